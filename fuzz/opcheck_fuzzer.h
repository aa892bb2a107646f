// What src/golden and src/opcheck do with text of outside origin: the parameters of an operation
// with the tensors that it was given, and a table of operations. The replay of the corpora
// (tests/attacks) includes it too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
#include <utility>
#include <vector>

#include "golden/golden.h"
#include "golden/rounding.h"
#include "opcheck/measure.h"
#include "opcheck/operation_rows.h"
#include "tensor/half.h"

namespace ait::fuzz {

// One character is one number, so that lengths and indices are easily right.
inline double number_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  if (c >= 'a' && c <= 'z') return 'a' - c - 1;  // a is -1
  switch (c) {
    case '.':
      return 0.5;
    case '_':
      return -0.5;
    case ',':
      return 0.125;
    case '!':
      return 1000;
    case '#':
      return 70000;
    case '$':
      return 1e38;
    case '@':
      return 0x1p62;
    case '~':
      return std::numeric_limits<double>::infinity();
    case '^':
      return std::numeric_limits<double>::quiet_NaN();
    default:
      return 0;
  }
}

// The number in a type; types that have no such conversion hold its low bytes.
inline void store(double value, DType dtype, std::byte* to) {
  const double rounded = golden::round_to(dtype, value);
  const auto single = static_cast<float>(rounded);
  uint64_t bits = 0;
  if (dtype == DType::kFloat64)
    std::memcpy(&bits, &rounded, sizeof rounded);
  else if (dtype == DType::kFloat32)
    std::memcpy(&bits, &single, sizeof single);
  else if (dtype == DType::kFloat16)
    bits = float_to_fp16(single);
  else if (dtype == DType::kBFloat16)
    bits = float_to_bf16(single);
  else if (dtype == DType::kUInt64)
    bits = rounded < 0x1p63 ? static_cast<uint64_t>(static_cast<int64_t>(rounded)) : ~uint64_t{0};
  else
    bits = static_cast<uint64_t>(static_cast<int64_t>(
        std::isfinite(rounded) ? std::clamp(rounded, -0x1p62, 0x1p62) : 127.0));
  std::memcpy(to, &bits, std::min(size_bytes(dtype), sizeof bits));
}

// Takes the text up to the next `end` off its front.
inline std::string_view take(std::string_view& text, char end) {
  const std::string_view out = text.substr(0, text.find(end));
  text.remove_prefix(std::min(out.size() + 1, text.size()));
  return out;
}

// "float16 2,3 0123": a type, a shape, and numbers that are repeated; nothing for other words, and
// for more elements than are looked at in a short time.
inline std::optional<Tensor> tensor_of(std::string_view words) {
  constexpr size_t kMaxElements = 4096;
  const auto dtype = parse_dtype(take(words, ' '));
  std::string_view dims = take(words, ' ');
  Shape shape;
  while (!dims.empty() && shape.size() < 9) {
    int64_t size = 0;
    for (const char c : take(dims, ','))
      size = std::min<int64_t>(size * 10 + std::abs(c - '0'), 1 << 20);
    shape.push_back(size);
  }
  const auto elements = count_elements(shape);
  if (!dtype || !elements || *elements > kMaxElements) return std::nullopt;
  const size_t bytes = size_bytes(*dtype);
  auto data = std::make_shared<std::vector<std::byte>>(*elements * bytes);
  for (size_t i = 0; i < *elements && !words.empty(); ++i)
    store(number_of(words[i % words.size()]), *dtype, data->data() + i * bytes);
  auto tensor = Tensor::contiguous(data, *data, *dtype, std::move(shape));
  return tensor ? std::optional(std::move(*tensor)) : std::nullopt;
}

inline void require(bool condition,
                    const std::source_location& where = std::source_location::current()) {
  if (condition) return;
  std::fprintf(stderr, "a promise is broken: line %u\n", static_cast<unsigned>(where.line()));
  std::abort();
}

// An output is as its header promises, so that whoever reads it needs no more checks.
inline void look_at(const golden::Output& output, const golden::Operation& operation) {
  const auto elements = count_elements(output.shape);
  require(elements.has_value());
  size_t count = *elements;
  if (output.part) {
    size_t end = 0;
    for (const size_t start : output.part->starts) {
      require(start >= end);
      end = start + output.part->stretch_elements;
      require(end <= *elements);
    }
    count = output.part->starts.size() * output.part->stretch_elements;
    require(output.part->input < operation.inputs.size());
  }
  require(output.values.size() == count);
  require(output.slack.empty() || output.slack.size() == count);
  require(output.undefined.empty() || output.undefined.size() == count);
  require(output.tie_of.empty() || output.tie_of.size() == count);
  for (const size_t set : output.tie_of)
    require(set == golden::Output::kNoTie || set < output.ties.size());
  for (const golden::Form& form : output.forms) require(form.values.size() == count);
  require(!output.written_input || *output.written_input < operation.inputs.size());

  // What a perfect kernel gives is right.
  if (output.part) return;
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt8}) {
    const size_t bytes = size_bytes(dtype);
    auto data = std::make_shared<std::vector<std::byte>>(count * bytes);
    for (size_t i = 0; i < count; ++i) store(output.values[i], dtype, data->data() + i * bytes);
    const auto tensor = Tensor::contiguous(data, *data, dtype, output.shape);
    opcheck::CheckRow row;
    opcheck::measure(output, tensor->view(), std::nullopt, {true, true, true}, row);
    require(!row.is_outside_bound());
  }
}

// The plain loops and the faster ways give the same, far within what float32 explains.
inline void compare(const golden::Output& fast, const golden::Output& plain) {
  require(fast.shape == plain.shape && fast.values.size() == plain.values.size());
  for (size_t i = 0; i < fast.values.size() && !fast.slack.empty(); ++i) {
    const double a = fast.values[i], b = plain.values[i];
    if (!fast.undefined.empty() && fast.undefined[i]) continue;
    if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(fast.slack[i])) continue;
    // Of a sum with an infinite term that counts nothing there is no slack.
    require(std::abs(a - b) <= std::max(fast.slack[i], 1e-9 * std::abs(b)));
  }
}

// The type, the parameters, then a line for each tensor: "i float16 2,3 0123" goes in ("f …" stored
// as FRACTAL_NZ, "-" is missing), "o float16 2,3" was recorded of an output, "r {…}" begins the
// inputs of a rank with its parameters.
inline int read_as_golden(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  golden::Operation operation;
  operation.type = take(text, '\n');
  operation.param = take(text, '\n');
  golden::GivenList* inputs = &operation.inputs;
  while (!text.empty() && operation.ranks.size() < 8 && inputs->size() < 64) {
    std::string_view line = take(text, '\n');
    const std::string_view kind = take(line, ' ');
    if (kind == "r") {
      inputs = &operation.ranks.emplace_back();
      operation.rank_params.push_back(line);
      continue;
    }
    const auto tensor = tensor_of(line);
    if (kind == "-") inputs->emplace_back();
    if (!tensor) continue;
    if (kind == "o")
      operation.outputs.push_back({tensor->dtype(), tensor->shape()});
    else
      inputs->emplace_back(golden::Given{*tensor, kind == "f"});
  }
  for (const size_t input : golden::changed_inputs(operation.type, operation.param))
    require(input < 64);
  golden::Limits limits;
  limits.memory_bytes = size_t{16} << 20;
  limits.threads = 1;
  const auto fast = golden::compute(operation, limits);
  if (!fast) {
    require(!fast.error().message().empty());
    return 0;
  }
  for (const size_t input : fast->read_inputs) require(input < operation.inputs.size());
  for (const golden::Output& output : fast->outputs) look_at(output, operation);
  limits.reference_loops = true;
  const auto plain = golden::compute(operation, limits);
  require(plain && plain->outputs.size() == fast->outputs.size());
  for (size_t i = 0; i < fast->outputs.size(); ++i) compare(fast->outputs[i], plain->outputs[i]);
  return 0;
}

// A table of operations: every row is an operation, or says why not.
inline int read_as_operation_rows(const uint8_t* data, size_t size) {
  const auto rows =
      opcheck::parse_operation_rows({reinterpret_cast<const char*>(data), size}, "table.csv");
  if (!rows) return 0;
  for (const opcheck::OperationRow& row : *rows) {
    require(!row.problem.empty() || (!row.ids.empty() && !row.type.empty()));
    require(row.param.size() <= opcheck::kMaxParamBytes);
  }
  return 0;
}

}  // namespace ait::fuzz
