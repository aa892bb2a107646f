// One output of a function, judged twice: by the old tool's rule, and by what rounding explains.
//
//   Output out = judge_tensors({"linear"}, bench, device, {});
//   if (out.wants_moved)  // what a rounding of the inputs does may explain the difference
//     out = judge_tensors({"linear"}, bench, device, {.moved = &moved});
//   return std::pair(out.passes, out.within);
//
// `passes`: cosine > 0.99 and the double thousandth or ten-thousandth; `within`: no farther off than
// limit_of() roundings (limits.h). tests/api_check/example_test.cpp runs this example. This is the
// main header of `api_check`: random.h draws inputs, measure.h measures, limits.h says what rounding
// explains, tables/api_check.h has the columns. A function that is judged by another limit is a word
// in a list of limits.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api_check/limits.h"
#include "api_check/measure.h"
#include "tensor/tensor.h"

namespace ait::api_check {

struct Function {
  std::string name;  // "linear"
  Direction direction = Direction::kForward;
};

struct Output {
  std::string name;        // "Functional*linear*0.forward.output.0"
  std::string bench_type;  // "torch.float32", "<class 'int'>"
  std::string device_type;
  std::string shape;  // "(4, 128)", or a type
  bool is_measured = false;
  Difference difference;      // of real tensors
  std::optional<bool> equal;  // of what is compared as it is: integers, Python's values
  double error_rate = 0;      // of integers and bools

  std::string cosine_message;
  std::string builtin_message;
  std::string ten_thousandth_message;
  bool passes = false;
  bool within = false;
  double limit = 0;          // in roundings
  bool wants_moved = false;  // not within, unless the inputs' roundings explain it
  std::string message;
};

// Tensors that share their shape, of whatever types.
Output judge_tensors(const Function& function, const TensorView& bench, const TensorView& device,
                     const MeasureOptions& options);

// What cannot be compared, and why.
Output mismatch(std::string bench_type, std::string device_type, std::string message);

// Values of Python that are equal or not; `type` is "<class 'int'>".
Output judge_values(const std::string& type, bool equal, std::string message);

// Dropout draws other numbers on every device: the share of zeros must be that of the benchmark, and
// what p and the zeros of the input make one expect; the rest must be the input divided by 1 - p
// where `scaled` says so.
struct Dropout {
  double p = 0;
  bool scaled = false;
  size_t groups = 0;  // that are dropped together, as channels are: too few of them prove nothing
};
Output judge_dropout(const Dropout& dropout, const TensorView& input, const TensorView& bench,
                     const TensorView& device);

}  // namespace ait::api_check
