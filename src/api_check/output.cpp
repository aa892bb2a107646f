#include "api_check/output.h"

#include <cmath>
#include <cstdio>

#include "golden/rounding.h"
#include "metrics/compare.h"
#include "metrics/elements.h"

namespace ait::api_check {
namespace {

constexpr double kSmallestCosine = 0.99;
constexpr size_t kThousandth = 1;  // of kThresholds
constexpr size_t kTenThousandth = 2;
constexpr size_t kFewElements = 100;     // of dropout: too few to say anything about a share
constexpr double kShareTolerance = 0.1;  // of zeros

enum class TypeClass : uint8_t { kReal, kInteger, kBool, kOther };

TypeClass class_of(DType dtype) {
  if (dtype == DType::kBool) return TypeClass::kBool;
  switch (info(dtype).kind) {
    case DTypeKind::kInteger:
      return TypeClass::kInteger;
    case DTypeKind::kFloat:
      return TypeClass::kReal;
    default:
      return TypeClass::kOther;
  }
}

// bool and uint8 stood for each other.
bool comparable(DType one, DType other) {
  const TypeClass a = class_of(one), b = class_of(other);
  const auto is_flag = [](DType dtype) { return dtype == DType::kBool || dtype == DType::kUInt8; };
  return a != TypeClass::kOther && (a == b || (is_flag(one) && is_flag(other)));
}

std::string torch_name(DType dtype) { return "torch." + std::string(name(dtype)); }

// As Python writes a tuple.
std::string tuple_text(std::span<const int64_t> shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::string short_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

bool cosine_passes(Output& out) {
  const Difference& d = out.difference;
  if (d.elements == 1) {
    out.cosine_message =
        "All the data in npu dump data is scalar. Please refer to other compare algorithms.";
    return true;
  }
  if (d.cosine) return *d.cosine > kSmallestCosine;
  if (d.device_zero != d.bench_zero) {
    out.cosine_message = d.device_zero ? "All the data is zero in npu dump data."
                                       : "All the data is zero in bench dump data.";
    return false;
  }
  return true;
}

bool ratio_passes(const Difference& d, size_t threshold) {
  return d.share_below(threshold) > 1 - kThresholds[threshold];
}

void judge_by_rule(DType dtype, Output& out) {
  const bool narrow = size_bytes(dtype) < size_bytes(DType::kFloat32);
  const bool cosine = cosine_passes(out);
  if (narrow) out.ten_thousandth_message = "This indicator is not used to evaluate float16 data";
  out.passes = cosine && out.difference.mismatched == 0 &&
               ratio_passes(out.difference, narrow ? kThousandth : kTenThousandth);
}

void explain(const Difference& d, Output& out) {
  if (d.mismatched > 0) {
    out.message = "NaN/Inf mismatch at " + std::to_string(d.mismatched) + " of " +
                  std::to_string(d.elements) + " elements";
    return;
  }
  if (out.within == out.passes && out.within) return;
  out.message = "element " + std::to_string(d.worst) + " is " + short_text(d.worst_device) +
                " and not " + short_text(d.worst_bench) + ", " + short_text(d.roundings) +
                " roundings off, all together " + short_text(d.typical) + "; " +
                short_text(out.limit) + " and " + short_text(typical_limit(out.limit)) +
                " are usual";
  if (out.within)
    out.message += ": no fault, but relative errors near zero say little about such a function";
}

void judge_by_rounding(const Function& function, DType dtype, bool is_moved, Output& out) {
  const Difference& d = out.difference;
  out.limit = limit_of(function.name, function.direction, dtype);
  const bool many = d.elements >= kFewestForTypical;
  out.within = d.mismatched == 0 && d.roundings <= out.limit &&
               (!many || d.typical <= typical_limit(out.limit));
  out.wants_moved = !out.within && !is_moved && d.mismatched == 0 && out.limit > 0;
}

void judge_whole(const TensorView& bench, const TensorView& device, Output& out) {
  metrics::Request request;
  request.kl = false;
  const auto compared = metrics::compare(bench, device, request);
  const size_t differing = compared ? compared->differing : device.elements;
  out.equal = differing == 0;
  out.error_rate = static_cast<double>(differing) / static_cast<double>(device.elements);
  out.passes = out.within = *out.equal;
  out.builtin_message = "Compare algorithm cosine_sim is not supported for " +
                        std::string(name(device.dtype)) + " data. Only judged by Error Rate.";
  if (!out.within)
    out.message =
        std::to_string(differing) + " of " + std::to_string(device.elements) + " elements differ";
}

}  // namespace

Output judge_tensors(const Function& function, const TensorView& bench, const TensorView& device,
                     const MeasureOptions& options) {
  if (!comparable(bench.dtype, device.dtype))
    return mismatch(torch_name(bench.dtype), torch_name(device.dtype),
                    "Bench out dtype is " + torch_name(bench.dtype) + " but npu output dtype is " +
                        torch_name(device.dtype) + ", cannot compare.");
  Output out;
  out.bench_type = torch_name(bench.dtype);
  out.device_type = torch_name(device.dtype);
  out.shape = tuple_text(device.shape);
  if (device.elements == 0) {
    out.passes = out.within = true;
    out.message = "empty output";
  } else if (class_of(device.dtype) != TypeClass::kReal) {
    judge_whole(bench, device, out);
  } else {
    out.is_measured = true;
    MeasureOptions how = options;
    how.neighbours = adds_up(function.name, function.direction);
    out.difference = measure(bench, device, how);
    judge_by_rule(device.dtype, out);
    judge_by_rounding(function, device.dtype, options.moved != nullptr, out);
    explain(out.difference, out);
  }
  return out;
}

Output mismatch(std::string bench_type, std::string device_type, std::string message) {
  Output out;
  out.bench_type = std::move(bench_type);
  out.device_type = std::move(device_type);
  out.message = std::move(message);
  return out;
}

Output judge_values(const std::string& type, bool equal, std::string message) {
  Output out;
  out.bench_type = out.device_type = out.shape = type;
  out.equal = out.passes = out.within = equal;
  out.message = std::move(message);
  return out;
}

Output judge_dropout(const Dropout& dropout, const TensorView& input, const TensorView& bench,
                     const TensorView& device) {
  Output out;
  out.bench_type = torch_name(bench.dtype);
  out.device_type = torch_name(device.dtype);
  out.shape = tuple_text(device.shape);
  const auto elements = static_cast<double>(device.elements);
  const double zeros = static_cast<double>(count_zeros(device)) / elements;
  const double bench_zeros = static_cast<double>(count_zeros(bench)) / elements;
  const double input_zeros = static_cast<double>(count_zeros(input)) / elements;
  const double expected = input_zeros + (1 - input_zeros) * dropout.p;
  const bool too_few = device.elements < kFewElements || dropout.groups < kFewElements;
  out.passes = too_few || std::abs(bench_zeros - zeros) < kShareTolerance;
  out.within = out.passes && (too_few || std::abs(zeros - expected) < kShareTolerance);
  out.message = "dropout: a share of " + short_text(zeros) + " is zero, in the benchmark " +
                short_text(bench_zeros) + ", " + short_text(expected) + " expected";
  if (!dropout.scaled || dropout.p >= 1) return out;
  std::vector<double> values, inputs;
  metrics::read_elements(device, 0, device.elements, values);
  metrics::read_elements(input, 0, input.elements, inputs);
  size_t wrong = 0;
  for (size_t i = 0; i < device.elements; ++i) {
    const double kept = inputs[i] / (1 - dropout.p);
    const double off = std::abs(values[i] - kept);
    // The factor is rounded, and the product.
    if (values[i] != 0 && !(off <= 4 * golden::half_step(device.dtype, kept))) ++wrong;
  }
  if (wrong > 0) {
    out.within = false;
    out.message +=
        "; " + std::to_string(wrong) + " of the kept elements are not the input / (1 - p)";
  }
  return out;
}

}  // namespace ait::api_check
