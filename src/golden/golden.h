// What an operation of the acceleration library must give, computed in double precision from the
// inputs that it was given.
//
//   Operation operation;
//   operation.type = "RmsNormOperation";
//   operation.param = R"({"layerType": 1, "normParam": {"epsilon": 1e-6}})";
//   operation.inputs = {Given{x}, Given{gamma}};          // in the library's order
//   operation.outputs = {{DType::kFloat16, {4, 8}}};      // what was recorded
//   const auto expected = compute(operation);
//   if (!expected) return fail(expected.error());         // kUnsupported: no golden, and why
//   const Output& y = expected->outputs[0];
//   const bool sound = std::abs(recorded - y.values[3]) <= bound(y, 3, DType::kFloat16);
//
// tests/golden/example_test.cpp runs this example.
//
// A golden is the definition, written as loops that can be read, with the roundings that are part
// of the definition and no others. It also says how far a sound kernel may be off: `slack` is what
// sums in float32 explain before the result is rounded, and bound() adds that rounding.
//
// A new operation is a function in the file of its family, which takes a Task (task.h), and its
// line in registry.cpp; tests/golden holds it against somebody else's implementation.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor.h"

namespace ait::golden {

// A tensor that went into an operation.
struct Given {
  Tensor tensor;
  bool fractal = false;  // stored as FRACTAL_NZ, format 29 (array.h)
};
using GivenList = std::vector<std::optional<Given>>;

// What is known of a tensor that came out of it.
struct Recorded {
  DType dtype = DType::kFloat32;
  Shape shape;
};

struct Operation {
  std::string_view type;   // "RmsNormOperation"
  std::string_view param;  // JSON; "" for none
  GivenList inputs;        // in the library's order, nothing for a tensor without elements
  std::vector<Recorded> outputs;
  // Of operations that several ranks do together: the inputs of each rank, this one's too.
  std::vector<GivenList> ranks;
  // And their parameters, where they were recorded: a few operations need them.
  std::vector<std::string_view> rank_params;
};

// The same result as other devices give it.
struct Form {
  std::string name;
  std::vector<double> values;
};

// The part of a large tensor, such as a cache, that an operation writes to. Everything beside it
// stays as it was, which a sound result must show, too.
struct Part {
  size_t input = 0;             // that holds the tensor as it was before
  size_t stretch_elements = 0;  // each stretch that is written has as many
  std::vector<size_t> starts;   // where each begins, in elements of the whole; ascending
};

struct Output {
  Shape shape;
  std::vector<double> values;   // before they are rounded to the type of the output
  std::vector<double> slack;    // for each value; empty: none, the values are moved or counted
  std::vector<bool> undefined;  // for each value: the definition leaves it open; empty: none is
  std::vector<Form> forms;      // beside `values`, which stand for the first
  std::string form;             // the name of `values` where there are others
  // Sets of values of which each is as good as the others, such as the places of equal numbers in a
  // sorted list, and for each value the number of its set, or kNoTie. Empty: there are none.
  std::vector<std::vector<double>> ties;  // each ascending
  std::vector<size_t> tie_of;
  static constexpr size_t kNoTie = ~size_t{0};
  // The input that holds this result after the operation. What was recorded as an output counts
  // more; some operations have no output of their own for it.
  std::optional<size_t> written_input;
  // Where only a part is written: `shape` is that of the whole, and all of the above is that of the
  // stretches, one after the other.
  std::optional<Part> part;
};

struct Expected {
  std::vector<Output> outputs;
  // The inputs whose values it is made of. One that the operation changes and that is not among
  // them may as well have been recorded afterwards.
  std::vector<size_t> read_inputs;
  std::vector<std::string> notes;  // what was inferred since the parameters do not say it
};

struct Limits {
  size_t memory_bytes = size_t{4} << 30;  // of doubles, inputs and outputs together
  size_t threads = 0;                     // 0: all cores
  bool reference_loops = false;           // the plain loops where there is a faster way
};

// kUnsupported: there is no golden for this type or mode; kCorrupt: the tensors contradict the
// parameters or each other; kUsage: the memory is not enough. The message names the operation and
// what is missing.
Result<Expected> compute(const Operation& operation, const Limits& limits = {});

// Whether there is a golden for some mode of this type.
bool knows(std::string_view type);
std::vector<std::string_view> known_types();
// Of another type: which fact is missing, or that nobody has heard of it.
std::string why_no_golden(std::string_view type);

// The inputs that an operation changes, so that recorded after it they are no longer what went in.
std::vector<size_t> changed_inputs(std::string_view type, std::string_view param);

// How far a sound result may be from values[index] once it is rounded to `dtype`. Form 0 is
// `values`, form n is forms[n - 1].
double bound(const Output& output, size_t index, DType dtype, size_t form = 0);

// Whether a result is as good as values[index] because it is in the same set of ties.
bool is_tied(const Output& output, size_t index, double result);

}  // namespace ait::golden
