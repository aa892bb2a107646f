// One golden that is being computed: parameters and inputs by name, and the memory they may take.
//
//   Result<Expected> sum(Task& task) {
//     const double factor = task.param().number("factor", 1);
//     if (auto given = task.takes({"x", "?bias"}); !given) return fail(given.error());
//     const Array x = task.values("x");
//     …
//     return task.give({output});
//   }
#pragma once

#include <atomic>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "golden/array.h"
#include "golden/golden.h"
#include "graph/atb_param.h"

namespace ait::golden {

class Task {
 public:
  Task(const Operation& operation, const Limits& limits)
      : operation_(operation), limits_(limits), param_(operation.param) {}

  graph::AtbParam& param() { return param_; }
  const Operation& operation() const { return operation_; }
  const Limits& limits() const { return limits_; }

  // Names the inputs in the library's order. Fails where one is missing, has no real numbers, or
  // all together would need too much memory. "?bias" may be missing; "~cache" is read where it is
  // needed only, so its size does not count; "~?cache" is both.
  Result<void> takes(const std::vector<std::string_view>& names);
  // The same of the inputs of rank `rank`, from now on.
  Result<void> takes_of_rank(size_t rank, const std::vector<std::string_view>& names);

  // Of an input that takes() has named. An input that is missing has no elements.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  DType dtype(std::string_view name) const { return find(name)->tensor.dtype(); }
  const Shape& shape(std::string_view name) const;
  bool fractal(std::string_view name) const { return find(name)->fractal; }
  const Tensor& tensor(std::string_view name) const;
  Array values(std::string_view name) const;
  // Elements [first, first + count) of one that is large; `out` has room for them, or makes it.
  void read(std::string_view name, size_t first, size_t count, double* out) const;
  void read(std::string_view name, size_t first, size_t count, std::vector<double>& out) const;

  // Inputs up to the last one that is there.
  size_t input_count() const;
  // What was recorded of an output, or nullptr.
  const Recorded* recorded(size_t output) const;
  // The type of an output, and where none was recorded another one.
  DType output_type(size_t output, DType otherwise) const;

  // Products by the faster way, or by the plain loop where the limits ask for it. `column_norms` as
  // for multiply() in product.h.
  void multiply(const struct Matrix& a, const struct Matrix& b, double* out,
                std::vector<double>* column_norms = nullptr) const;

  // Fails unless this many more doubles fit, each as often as `copies` says.
  Result<void> make_room(size_t elements, size_t copies = 1);

  void note(std::string text);  // the same again is not kept
  Result<Expected> give(std::vector<Output> outputs);
  Result<Expected> give(Output output);  // one, which is not copied

  // There is no golden for this mode; `what` says which and why.
  Error no_golden(std::string_view what) const;
  // The tensors contradict the parameters or each other.
  Error contradiction(std::string_view what) const;

 private:
  const Given* find(std::string_view name) const;
  const Tensor& looked_at(const Given& given) const;

  const Operation& operation_;
  const Limits& limits_;
  graph::AtbParam param_;
  const GivenList* inputs_ = &operation_.inputs;
  std::vector<std::string_view> names_;
  std::vector<std::string> notes_;
  size_t doubles_ = 0;
  // Which of the operation's own inputs somebody looked at; several threads may at once.
  mutable std::vector<std::atomic<bool>> read_ =
      std::vector<std::atomic<bool>>(operation_.inputs.size());
};

// What float32 sums of `length` products explain, whose magnitudes add up to `magnitudes`, whatever
// their signs and order. Where terms can be looked at, Walk (rounding.h) is narrower.
double sum_slack(size_t length, double magnitudes);

// Functions of float32 libraries are right to so many units.
inline constexpr double kFunctionUnits = 4;

inline bool is_integer(DType dtype) { return info(dtype).kind == DTypeKind::kInteger; }
inline bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// An output whose values are moved, not computed.
Output exact_output(Shape shape, std::vector<double> values);
// An output of functions of single elements, each right to a few units of float32 of its own
// magnitude, or of a larger one that is lost on the way to it: of x in 1 + tanh(x).
Output function_output(Shape shape, std::vector<double> values,
                       const std::vector<double>& magnitudes = {});

}  // namespace ait::golden
