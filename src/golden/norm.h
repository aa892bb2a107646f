// Norms of groups of elements, which several operations contain.
#pragma once

#include <vector>

#include "golden/array.h"
#include "golden/task.h"

namespace ait::golden {

// Values with what a float32 kernel may be off in each of them.
struct Inexact {
  Array values;
  std::vector<double> slack;
};

Output output_of(Inexact values);

// An input of one number.
Result<double> single(const Task& task, std::string_view name);

// What a norm is multiplied with and what is added. Shorter ones than the group are repeated.
struct Scale {
  Array gamma;
  Array beta;  // no elements: none
};

// The inputs `gamma` and `beta` for groups of so many elements.
Result<Scale> scale_of(Task& task, size_t group);

struct RmsMode {
  double epsilon = 0;
  bool add_one = false;       // Gemma: gamma counts from 1
  bool half_between = false;  // rounded to half before gamma is multiplied
};

// By the keys modelType and precisionMode of normParam.
RmsMode read_rms_mode(Task& task, double epsilon);

struct RmsNormed {
  Inexact y;
  Inexact reciprocal;  // 1 / root mean square, one for each group
};

// Of each `group` elements: x / sqrt(mean of squares + epsilon) * gamma + beta.
RmsNormed rms_normed(const Inexact& x, size_t group, const Scale& scale, const RmsMode& mode);

// The same: (x - mean) / sqrt(variance + epsilon) * gamma + beta.
Inexact layer_normed(const Inexact& x, size_t group, const Scale& scale, double epsilon);

}  // namespace ait::golden
