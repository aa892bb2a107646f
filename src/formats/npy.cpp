#include "formats/npy.h"

#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/single_tensor.h"

namespace ait::formats::npy {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x93NUMPY"sv;
constexpr size_t kLengthOffsetBytes = 8;
// An array of plain numbers needs some 200 bytes; numpy itself stops trusting headers at 10 000.
constexpr size_t kMaxHeaderBytes = 65536;

struct Header {
  std::string_view descr;
  bool fortran_order;
  Shape shape;
};

// Just enough of Python's literals for the dict above; anything else is refused, never guessed.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Header> dict() {
    Fields fields;
    if (!take('{')) return fail(error() << "should start with a dict");
    while (!take('}')) {
      const auto key = string();
      if (!key || !take(':')) return fail(error() << "should hold 'key': value pairs");
      if (auto done = entry(*key, fields); !done) return fail(done.error());
      if (take(',')) continue;
      if (!take('}')) return fail(error() << "lacks a comma or the closing brace");
      break;
    }
    skip_space();
    if (at_ != text_.size()) return fail(error() << "goes on after its dict");
    if (!fields.descr || !fields.fortran_order || !fields.shape)
      return fail(error() << "lacks one of 'descr', 'fortran_order' and 'shape'");
    return Header{*fields.descr, *fields.fortran_order, std::move(*fields.shape)};
  }

 private:
  struct Fields {
    std::optional<std::string_view> descr;
    std::optional<bool> fortran_order;
    std::optional<Shape> shape;
  };

  Result<void> entry(std::string_view key, Fields& fields) {
    if (key == "descr" && !fields.descr) {
      skip_space();
      if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
        return fail(Error(ErrorCode::kUnsupported)
                    << "is a structured array; save each of its fields as an array of its own");
      fields.descr = string();
      if (fields.descr) return {};
    } else if (key == "fortran_order" && !fields.fortran_order) {
      fields.fortran_order = boolean();
      if (fields.fortran_order) return {};
    } else if (key == "shape" && !fields.shape) {
      fields.shape = tuple();
      if (fields.shape) return {};
    } else {
      return fail(error() << "has an unknown or repeated key '" << printable(key) << "'");
    }
    return fail(error() << "has a bad value for '" << key << "'");
  }

  std::optional<std::string_view> string() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != std::string_view::npos)
      return std::nullopt;  // numpy writes no escapes
    at_ = end + 1;
    return inside;
  }

  std::optional<bool> boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    return std::nullopt;
  }

  // (), (3,), (2, 3): a single dimension without its comma is a number in Python, not a tuple.
  std::optional<Shape> tuple() {
    if (!take('(')) return std::nullopt;
    Shape shape;
    bool comma = true;
    while (!take(')')) {
      if (!comma || shape.size() == kMaxRank) return std::nullopt;
      skip_space();
      int64_t dimension = 0;
      const char* const end = text_.data() + text_.size();
      const auto [stop, failure] = std::from_chars(text_.data() + at_, end, dimension);
      if (failure != std::errc()) return std::nullopt;
      at_ = static_cast<size_t>(stop - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;
      shape.push_back(dimension);
      comma = take(',');
    }
    if (shape.size() == 1 && !comma) return std::nullopt;
    return shape;
  }

  void skip_space() {
    while (at_ < text_.size() && " \t\r\n"sv.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool take(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  Error error() const { return Error(ErrorCode::kCorrupt) << "the npy header "; }

  std::string_view text_;
  size_t at_ = 0;
};

struct ElementType {
  DType dtype;
  bool byte_swapped;
};

constexpr std::array<std::pair<std::string_view, DType>, 15> kTypes = {{
    {"b1", DType::kBool},
    {"?", DType::kBool},
    {"i1", DType::kInt8},
    {"u1", DType::kUInt8},
    {"i2", DType::kInt16},
    {"u2", DType::kUInt16},
    {"i4", DType::kInt32},
    {"u4", DType::kUInt32},
    {"i8", DType::kInt64},
    {"u8", DType::kUInt64},
    {"f2", DType::kFloat16},
    {"f4", DType::kFloat32},
    {"f8", DType::kFloat64},
    {"c8", DType::kComplex64},
    {"c16", DType::kComplex128},
}};

Error unsupported_type(std::string_view descr, std::string_view type) {
  const char kind = type.empty() ? '\0' : type.front();
  if (kind == 'O')
    return Error(ErrorCode::kRefused)
           << "is an object array, which is pickled Python: loading it could run "
              "code, so ait never does; save it as numbers";
  Error error(ErrorCode::kUnsupported);
  error << "holds elements of numpy type '" << printable(descr) << "', ";
  if (type == "V1" || type == "V2" || type == "f1")
    error << "which is how ml_dtypes' bfloat16 and 8 bit types are saved, without saying which; "
             "save it "
             "as .safetensors or .pt, or write the bare bytes with tofile() and give their type";
  else if (type == "f16" || type == "f12" || type == "c32" || type == "c24")
    error << "a long double, whose layout depends on the machine; convert it to float64 or "
             "complex128";
  else if (kind == 'S' || kind == 'U' || kind == 'a' || kind == 'T')
    error << "which are strings, not numbers";
  else if (kind == 'M' || kind == 'm')
    error << "which are dates or durations, not numbers; save them as int64";
  else
    error << "which ait does not read; convert it to a plain integer, float or complex type";
  return error;
}

Result<ElementType> element_type(std::string_view descr) {
  const char order = descr.empty() ? '\0' : descr.front();
  const bool has_order = "<>=|"sv.find(order) != std::string_view::npos;
  const std::string_view type = has_order ? descr.substr(1) : descr;
  for (const auto& [word, dtype] : kTypes) {
    if (word != type) continue;
    constexpr char kForeignOrder = std::endian::native == std::endian::little ? '>' : '<';
    return ElementType{dtype, order == kForeignOrder && size_bytes(dtype) > 1};
  }
  return fail(unsupported_type(descr, type));
}

// Column-major: the first index moves fastest.
Strides fortran_strides(const Shape& shape) {
  Strides strides;
  int64_t step = 1;
  for (const int64_t dimension : shape) {
    strides.push_back(step);
    step *= std::max<int64_t>(dimension, 1);
  }
  return strides;
}

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::string_view(reinterpret_cast<const char*>(bytes.data()), kMagic.size()) == kMagic;
}

Result<Array> parse(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) {
  if (!sniff(bytes)) return fail(Error(ErrorCode::kCorrupt) << "does not start like an npy file");
  const auto cut_off = [&] {
    return Error(ErrorCode::kCorrupt)
           << "the npy header is cut off: the file ends after " << bytes.size() << " bytes";
  };
  if (bytes.size() < kLengthOffsetBytes) return fail(cut_off());
  const auto major = std::to_integer<unsigned>(bytes[6]);
  const auto minor = std::to_integer<unsigned>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    return fail(Error(ErrorCode::kUnsupported, {}, 6)
                << "npy version " << major << "." << minor
                << " is not known; 1.0, 2.0 and 3.0 are read");
  const size_t text_offset = kLengthOffsetBytes + (major == 1 ? 2 : 4);
  if (bytes.size() < text_offset) return fail(cut_off());
  const size_t text_bytes = major == 1 ? read_le<uint16_t>(bytes, kLengthOffsetBytes)
                                       : read_le<uint32_t>(bytes, kLengthOffsetBytes);
  if (text_bytes > kMaxHeaderBytes)
    return fail(Error(ErrorCode::kCorrupt, {}, kLengthOffsetBytes)
                << "the npy header is said to be " << text_bytes << " bytes long; at most "
                << kMaxHeaderBytes << " are read");
  if (!range_fits(text_offset, text_bytes, bytes.size())) return fail(cut_off());

  auto header =
      Parser({reinterpret_cast<const char*>(bytes.data()) + text_offset, text_bytes}).dict();
  if (!header) return fail(header.error());
  const auto type = element_type(header->descr);
  if (!type) return fail(type.error());
  Shape& shape = header->shape;
  const auto elements = count_elements(shape);
  const auto need = elements ? checked_mul(*elements, size_bytes(type->dtype)) : std::nullopt;
  if (!need)
    return fail(Error(ErrorCode::kCorrupt)
                << "the npy header gives the impossible shape " << shape_text(shape));
  const auto data = bytes.subspan(text_offset + text_bytes);
  if (data.size() < *need)
    return fail(Error(ErrorCode::kCorrupt, {}, text_offset + text_bytes)
                << "the npy header promises " << *need << " data bytes but " << data.size()
                << " are there; the file was probably cut short");
  Strides strides = header->fortran_order ? fortran_strides(shape) : row_major_strides(shape);
  auto tensor =
      Tensor::strided(std::move(owner), data, type->dtype, std::move(shape), std::move(strides), 0);
  if (!tensor) return fail(tensor.error());
  tensor->set_byte_swapped(type->byte_swapped);
  return Array{std::move(*tensor), data.size() - *need};
}

Result<Tensor> array_of(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                        std::string_view type, Shape shape, bool fortran_order) {
  const auto element = element_type(type);
  if (!element) return fail(element.error());
  const auto elements = count_elements(shape);
  const auto need = elements ? checked_mul(*elements, size_bytes(element->dtype)) : std::nullopt;
  if (!need || *need != bytes.size())
    return fail(Error(ErrorCode::kCorrupt)
                << "an array of shape " << shape_text(shape) << " and numpy type '"
                << printable(type) << "' has " << bytes.size() << " bytes, which does not fit");
  Strides strides = fortran_order ? fortran_strides(shape) : row_major_strides(shape);
  auto tensor = Tensor::strided(std::move(owner), bytes, element->dtype, std::move(shape),
                                std::move(strides), 0);
  if (tensor) tensor->set_byte_swapped(element->byte_swapped);
  return tensor;
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  const std::string path = file->path();
  const auto bytes = file->bytes();
  auto array = parse(std::move(file), bytes);
  if (!array) return fail(array.error().set_path(path));
  std::string note;
  if (array->surplus_bytes > 0)
    note = std::to_string(array->surplus_bytes) + " bytes follow the array and are ignored";
  return std::make_unique<SingleTensor>("npy", std::move(array->tensor), std::move(note));
}

}  // namespace ait::formats::npy
