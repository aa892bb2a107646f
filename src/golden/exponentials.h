// One row of a softmax in double precision, and how far the numbers of a sound kernel may be off.
#pragma once

#include <cstddef>

namespace ait::golden {

// Sums are kept for so many neighbours together, the last of which may be fewer.
inline constexpr size_t kGroupKeys = 16;

// What a kernel may be off in one exponential e of a score s, where m is the largest score:
// e * (relative + of_score * (|m| + 2 * (m - s))), and up to `floor` where e is too small for the
// type that it is held in.
struct RowNoise {
  double relative = 0;
  double of_score = 0;
  double floor = 0;
};

struct RowSums {
  double largest = 0;  // of the scores
  double total = 0;    // of the exponentials
  double noise = 0;    // the sum of the squares of what each may be off
};

// Replaces each score by exp(score - largest). `noises` are, for each group, the sums of the squares
// of what its exponentials may be off, and `each`, where it is not null, what each may be off. A
// score of minus infinity gives 0. Where all are, nothing is changed; where one is NaN or infinite,
// all become NaN.
RowSums exponentials(double* scores, size_t count, const RowNoise& noise, double* noises,
                     double* each);

// The same by the plain loop, which is the definition.
RowSums exponentials_plainly(double* scores, size_t count, const RowNoise& noise, double* noises,
                             double* each);

}  // namespace ait::golden
