// The numbers of a fault that hypotheses are tried on: some rows of the value and of its inputs as
// doubles, and the part of them that is hit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "locate/causes.h"

namespace ait::locate {

// Rows of a tensor; a row is its last dimension.
struct Rows {
  size_t columns = 0;
  std::vector<double> values;

  size_t count() const { return columns == 0 ? 0 : values.size() / columns; }
  const double* operator[](size_t row) const { return values.data() + row * columns; }
};

// An input that has the rows of the value.
struct Source {
  const CauseInput* input = nullptr;
  Rows golden;
  Rows actual;
};

// How far my value is from what is expected of it, and from what a hypothesis predicts, over
// golden's norm at the same places.
struct Fit {
  double error = 0;
  double residual = 0;
};

// What a hypothesis rests on. Where two explain a fault equally well, the earlier kind comes first.
enum class Proof : uint8_t {
  kModel,     // the operation was computed from its inputs
  kRelation,  // golden's value was changed, and nothing was fitted
  kFitted,    // some numbers were fitted, far fewer than there are elements
  kGuess,     // the error looks like it
  kPlace,     // it is only known which part is hit
};

struct Candidate {
  Cause cause;
  Proof proof = Proof::kRelation;
};

// Which part of the value is wrong, where the rest of it is sound.
struct Region {
  std::vector<size_t> seen;        // rows that were looked at, ascending
  std::vector<double> row_errors;  // of these
  bool rows_confined = false;
  std::vector<size_t> rows;  // those of them that are hit; all where not confined
  bool columns_confined = false;
  std::vector<size_t> columns;  // ascending
  double outside = 0;           // error of the rest

  bool confined() const { return rows_confined || columns_confined; }
};

class Evidence {
 public:
  // Not usable() where the value cannot be looked at: complex or packed elements, or none at all.
  explicit Evidence(const CauseCase& fault);
  bool usable() const { return usable_; }

  const CauseCase& fault() const { return *fault_; }
  size_t row_count() const { return row_count_; }  // of the whole value
  size_t columns() const { return columns_; }

  // Rows of the value that were taken, ascending, and their elements. Where either side is not
  // finite both are 0; `not_finite` counts these places in my value alone.
  const std::vector<size_t>& sample() const { return sample_; }
  const Rows& golden() const { return golden_; }
  const Rows& actual() const { return actual_; }
  const std::vector<Source>& sources() const { return sources_; }

  const Region& region() const { return region_; }
  // The part of the sample that hypotheses are tried on: all its rows and these columns.
  const std::vector<size_t>& hit_columns() const { return region_.columns; }
  double error() const { return error_; }
  double noise() const { return noise_; }              // relative to golden in that part
  double model_noise() const { return model_noise_; }  // what a sound model may miss golden by

  // Holds prediction(i, c) for row i of the sample and column c against my value. Where it is NaN,
  // the place is left out.
  template <typename Prediction>
  Fit fit(Prediction prediction) const {
    return fit_of(actual_, golden_, prediction);
  }
  // The same against golden's value: the error is that of nothing at all.
  template <typename Prediction>
  double model_error(Prediction prediction) const {
    return fit_of(golden_, golden_, prediction).residual;
  }

  // Rows from all over the value, whether they are hit or not: for what is fitted to golden alone. At
  // most as many as have so many elements.
  std::vector<size_t> spread_rows(size_t elements) const;
  // Rows of a tensor that has those of the value.
  Rows rows_of(const Tensor& tensor, std::span<const size_t> rows) const;

  // The error falls so far that it is no accident.
  bool explains(const Fit& fit) const {
    return fit.error > noise_ && fit.residual <= kFalls * fit.error &&
           fit.residual <= std::max(kAboveNoise * noise_, kFallsFar * fit.error);
  }
  // A model of the sound operation that gives golden's value this well is right.
  bool is_model(double residual) const {
    return residual <= model_noise_ && residual <= kFalls * error_;
  }

  void add(std::vector<Candidate>& out, Proof proof, std::string name, const std::string& what,
           const Fit& fit) const;

  // "in row 7", "in columns 64 to 95"; empty where the damage is everywhere.
  std::string where() const;

 private:
  static constexpr double kFalls = 0.5;
  static constexpr double kFallsFar = 0.125;
  static constexpr double kAboveNoise = 3;
  static constexpr size_t kFirstElements = 4096;
  static constexpr double kHopeless = 0.5;  // of the sum of squares

  struct Sums {
    double error = 0;
    double left = 0;
    double norm = 0;
  };
  template <typename Prediction>
  Sums sums_of(const Rows& target, const Rows& base, size_t step, Prediction& prediction) const {
    Sums sums;
    for (size_t i = 0; i < sample_.size(); ++i)
      for (size_t k = i % step; k < region_.columns.size(); k += step) {
        const size_t c = region_.columns[k];
        const double predicted = prediction(i, c);
        if (std::isnan(predicted)) continue;
        const double g = base[i][c];
        const double m = target[i][c];
        sums.error += (m - g) * (m - g);
        sums.left += (m - predicted) * (m - predicted);
        sums.norm += g * g;
      }
    return sums;
  }

  // Most predictions are far off, which some elements of each row tell.
  template <typename Prediction>
  Fit fit_of(const Rows& target, const Rows& base, Prediction prediction) const {
    const size_t step = sample_.size() * region_.columns.size() / kFirstElements;
    Sums sums;
    if (step > 1) sums = sums_of(target, base, step, prediction);
    const bool is_hopeless =
        step > 1 && sums.left > kHopeless * std::max(sums.error, kHopeless * sums.norm);
    if (!is_hopeless) sums = sums_of(target, base, 1, prediction);
    if (sums.norm <= 0) return {0, 1};
    return {std::sqrt(sums.error / sums.norm), std::sqrt(sums.left / sums.norm)};
  }

  void look_at_rows();
  void look_at_columns();
  void read_sources();

  const CauseCase* fault_;
  bool usable_ = false;
  size_t row_count_ = 0;
  size_t columns_ = 0;
  std::vector<size_t> sample_;
  Rows golden_;
  Rows actual_;
  std::vector<Source> sources_;
  Region region_;
  double error_ = 0;
  double noise_ = 0;
  double model_noise_ = 0;
};

// Half a unit in the last place, at least that of sums in float32; 0 for integers.
double rounding_unit(DType dtype);
bool is_real(DType dtype);

// All divisors of a number, descending.
std::vector<size_t> divisors(size_t number);

// "0.0123": two or three digits.
std::string short_number(double value);

// The solution of k linear equations, whose matrix is symmetric and given row by row. Nothing where
// they depend on each other.
std::optional<std::vector<double>> solve(std::vector<double> matrix, std::vector<double> right);

}  // namespace ait::locate
