#include "cli/tensor_source.h"

#include <charconv>

#include "base/log.h"

namespace ait::cli {
namespace {

// Names a person knows; every other spelling of parse_dtype works too.
constexpr std::string_view kDTypeExamples =
    "bool, int8, uint8, int16, int32, int64, float16, bfloat16, float32 or float64";

Error bad_shape(std::string_view text) {
  return Error(ErrorCode::kUsage)
         << "'" << printable(text)
         << "' is not a shape; write the sizes as 2,3 (or [] for a scalar)";
}

}  // namespace

Result<Shape> parse_shape(std::string_view text) {
  std::string_view rest = text;
  const bool bracketed = rest.starts_with('[') && rest.ends_with(']');
  if (bracketed) rest = rest.substr(1, rest.size() - 2);
  Shape shape;
  const char* at = rest.data();
  const char* const end = rest.data() + rest.size();
  const auto skip_blanks = [&] {
    while (at != end && *at == ' ') ++at;
  };
  skip_blanks();
  if (at == end) return bracketed ? Result<Shape>(shape) : fail(bad_shape(text));
  while (true) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc{} || size < 0 || shape.size() == kMaxRank) return fail(bad_shape(text));
    shape.push_back(size);
    at = next;
    skip_blanks();
    if (at == end) break;
    if (*at != ',' && *at != 'x') return fail(bad_shape(text));
    ++at;
    skip_blanks();
  }
  if (!count_elements(shape)) return fail(bad_shape(text));
  return shape;
}

Result<std::optional<formats::RawLayout>> parse_raw_layout(const std::string& dtype,
                                                           const std::string& shape,
                                                           std::string_view dtype_option) {
  if (dtype.empty() && shape.empty()) return std::nullopt;
  if (dtype.empty())
    return fail(Error(ErrorCode::kUsage)
                << "a shape is for bare bytes and needs their type; add " << dtype_option);
  const auto type = parse_dtype(dtype);
  if (!type)
    return fail(Error(ErrorCode::kUsage) << dtype_option << " does not know '" << printable(dtype)
                                         << "'; give one such as " << kDTypeExamples);
  formats::RawLayout layout{*type, std::nullopt};
  if (!shape.empty()) {
    auto sizes = parse_shape(shape);
    if (!sizes) return fail(sizes.error());
    layout.shape = std::move(*sizes);
  }
  return layout;
}

Result<Tensor> load(const TensorSource& source, std::string_view name_option) {
  if (auto file = formats::open_tensor_file(source.path, source.raw);
      file && !(*file)->note().empty())
    log_warning(printable(source.path) + ": " + printable((*file)->note()));
  auto tensor = formats::load_single(source.path, source.name, source.raw);
  if (!tensor && tensor.error().code() == ErrorCode::kUsage)
    tensor.error() << " (with " << name_option << ")";
  return tensor;
}

}  // namespace ait::cli
