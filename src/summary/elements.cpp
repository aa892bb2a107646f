#include "summary/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "report/number.h"
#include "tensor/half.h"

namespace ait::summary {
namespace {

using report::Cell;
using report::cell_text;

template <typename T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string complex_text(double real, double imaginary, std::string (*text)(double)) {
  const std::string second = text(imaginary);
  return text(real) + (second.front() == '-' ? "" : "+") + second + "j";
}

Cell hex_byte(uint8_t byte) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
}

Cell element(DType dtype, const std::byte* at) {
  const auto byte = read<uint8_t>(at);
  const auto real = [](float value) { return Cell(static_cast<double>(value)); };
  switch (dtype) {
    case DType::kBool:
      return byte != 0;
    case DType::kInt8:
      return int64_t{read<int8_t>(at)};
    case DType::kUInt8:
      return uint64_t{byte};
    case DType::kInt16:
      return int64_t{read<int16_t>(at)};
    case DType::kUInt16:
      return uint64_t{read<uint16_t>(at)};
    case DType::kInt32:
      return int64_t{read<int32_t>(at)};
    case DType::kUInt32:
      return uint64_t{read<uint32_t>(at)};
    case DType::kInt64:
      return read<int64_t>(at);
    case DType::kUInt64:
      return read<uint64_t>(at);
    case DType::kFloat16:
      return real(fp16_to_float(read<uint16_t>(at)));
    case DType::kBFloat16:
      return real(bf16_to_float(read<uint16_t>(at)));
    case DType::kFloat32:
      return real(read<float>(at));
    case DType::kFloat64:
      return read<double>(at);
    case DType::kFloat8E4M3FN:
      return real(fp8_e4m3fn_to_float(byte));
    case DType::kFloat8E5M2:
      return real(fp8_e5m2_to_float(byte));
    case DType::kFloat8E4M3FNUZ:
      return real(fp8_e4m3fnuz_to_float(byte));
    case DType::kFloat8E5M2FNUZ:
      return real(fp8_e5m2fnuz_to_float(byte));
    case DType::kFloat8E8M0FNU:
      return real(fp8_e8m0fnu_to_float(byte));
    case DType::kComplex32:
      return complex_text(double{fp16_to_float(read<uint16_t>(at))},
                          double{fp16_to_float(read<uint16_t>(at + 2))}, report::number_text);
    case DType::kComplex64:
      return complex_text(double{read<float>(at)}, double{read<float>(at + 4)},
                          report::number_text);
    case DType::kComplex128:
      return complex_text(read<double>(at), read<double>(at + 8), report::double_text);
    case DType::kInt4Packed:
    case DType::kFloat4Packed:
      return hex_byte(byte);
  }
  return {};
}

}  // namespace

std::vector<Cell> first_elements(const TensorView& view, size_t count) {
  count = std::min(count, view.elements);
  const size_t width = size_bytes(view.dtype);
  std::vector<std::byte> bytes(count * width);
  if (count > 0) gather(view, 0, count, bytes.data());
  std::vector<Cell> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(element(view.dtype, &bytes[i * width]));
  return out;
}

Cell element_at(const TensorView& view, size_t index) {
  std::array<std::byte, 16> bytes;  // of the widest type
  gather(view, index, 1, bytes.data());
  return element(view.dtype, bytes.data());
}

std::string element_text(DType dtype, const Cell& element) {
  if (dtype == DType::kFloat64) return report::double_text(std::get<double>(element));
  return cell_text(element);
}

std::string coordinates_text(std::span<const int64_t> shape, size_t flat_index) {
  std::vector<int64_t> indices(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(shape[i]);
    indices[i] = static_cast<int64_t>(flat_index % size);
    flat_index /= size;
  }
  return cell_text(Cell(indices));
}

}  // namespace ait::summary
