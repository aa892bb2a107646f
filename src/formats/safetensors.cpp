#include "formats/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/little_endian.h"

namespace ait::formats::safetensors {
namespace {

// Not simdjson::ondemand: only the DOM picks the best instructions at run time.
namespace dom = simdjson::dom;

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

constexpr std::array<std::pair<std::string_view, DType>, 20> kTypes = {{
    {"BOOL", DType::kBool},
    {"U8", DType::kUInt8},
    {"I8", DType::kInt8},
    {"I16", DType::kInt16},
    {"U16", DType::kUInt16},
    {"I32", DType::kInt32},
    {"U32", DType::kUInt32},
    {"I64", DType::kInt64},
    {"U64", DType::kUInt64},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"F32", DType::kFloat32},
    {"F64", DType::kFloat64},
    {"F8_E4M3", DType::kFloat8E4M3FN},
    {"F8_E5M2", DType::kFloat8E5M2},
    {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ},
    {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ},
    {"F8_E8M0", DType::kFloat8E8M0FNU},
    {"C64", DType::kComplex64},
    {"F4", DType::kFloat4Packed},
}};

std::optional<DType> find_type(std::string_view word) {
  for (const auto& [name, dtype] : kTypes)
    if (name == word) return dtype;
  return std::nullopt;
}

struct Entry {
  std::string name;
  std::string dtype;
  Shape shape;
  uint64_t begin_bytes = 0;  // from the end of the header
  uint64_t end_bytes = 0;
};

class Safetensors : public TensorFile {
 public:
  Safetensors(std::shared_ptr<const MappedFile> file, std::vector<Entry> entries,
              uint64_t data_offset)
      : file_(std::move(file)), entries_(std::move(entries)), data_offset_bytes_(data_offset) {}

  std::string_view format() const override { return "safetensors"; }
  size_t size() const override { return entries_.size(); }
  std::string name(size_t index) const override { return entries_[index].name; }

  Result<Tensor> load(size_t index) const override {
    const Entry& entry = entries_[index];
    const auto dtype = find_type(entry.dtype);
    if (!dtype)
      return fail(error(ErrorCode::kUnsupported, entry)
                  << "has the type " << printable(entry.dtype) << ", which ait does not read");
    const auto data = file_->bytes().subspan(data_offset_bytes_);
    if (entry.begin_bytes > entry.end_bytes || entry.end_bytes > data.size())
      return fail(error(ErrorCode::kCorrupt, entry)
                  << "should lie at bytes " << entry.begin_bytes << " to " << entry.end_bytes
                  << " of the data, but there are " << data.size()
                  << " data bytes; the file was probably cut short");
    Shape shape = entry.shape;
    if (*dtype == DType::kFloat4Packed) {
      if (shape.empty() || shape.back() % 2 != 0)
        return fail(error(ErrorCode::kUnsupported, entry)
                    << "of type F4 has the shape " << shape_text(shape)
                    << "; only an even last dimension is read, since two values share a byte");
      shape.back() /= 2;
    }
    const auto elements = count_elements(shape);
    const auto need = elements ? checked_mul(*elements, size_bytes(*dtype)) : std::nullopt;
    const uint64_t have = entry.end_bytes - entry.begin_bytes;
    if (!need || *need != have)
      return fail(error(ErrorCode::kCorrupt, entry)
                  << "of shape " << shape_text(entry.shape) << " and type " << entry.dtype
                  << " needs " << (need ? std::to_string(*need) : std::string("too many"))
                  << " bytes, but its offsets span " << have);
    auto tensor =
        Tensor::contiguous(file_, data.subspan(entry.begin_bytes, have), *dtype, std::move(shape));
    if (!tensor) return fail(tensor.error().set_path(file_->path()));
    tensor->set_byte_swapped(kLittleEndianIsForeign);
    return tensor;
  }

  std::string note() const override {
    uint64_t last = 0;
    for (const Entry& entry : entries_) last = std::max(last, entry.end_bytes);
    const uint64_t data_bytes = file_->bytes().size() - data_offset_bytes_;
    if (last >= data_bytes) return {};
    return std::to_string(data_bytes - last) + " bytes follow the last tensor and are ignored";
  }

 private:
  Error error(ErrorCode code, const Entry& entry) const {
    return Error(code, file_->path()) << "tensor " << printable(entry.name) << " ";
  }

  std::shared_ptr<const MappedFile> file_;
  std::vector<Entry> entries_;
  uint64_t data_offset_bytes_;
};

simdjson::error_code read_shape(dom::element value, Shape& shape) {
  dom::array array;
  if (const auto bad = value.get(array)) return bad;
  if (array.size() > kMaxRank) return simdjson::CAPACITY;
  for (const dom::element item : array)
    if (const auto bad = item.get(shape.emplace_back())) return bad;
  return simdjson::SUCCESS;
}

simdjson::error_code read_offsets(dom::element value, Entry& entry) {
  dom::array array;
  if (const auto bad = value.get(array)) return bad;
  if (array.size() != 2) return simdjson::INDEX_OUT_OF_BOUNDS;
  if (const auto bad = array.at(0).get(entry.begin_bytes)) return bad;
  return array.at(1).get(entry.end_bytes);
}

// Fields may come in any order; unknown ones are left alone, missing and repeated ones are refused.
simdjson::error_code read_entry(dom::element value, Entry& entry) {
  dom::object object;
  if (const auto bad = value.get(object)) return bad;
  size_t dtypes = 0;
  size_t shapes = 0;
  size_t offsets = 0;
  for (const auto& [key, content] : object) {
    simdjson::error_code bad = simdjson::SUCCESS;
    if (key == "dtype") {
      ++dtypes;
      std::string_view word;
      bad = content.get(word);
      entry.dtype = word;
    } else if (key == "shape") {
      ++shapes;
      bad = read_shape(content, entry.shape);
    } else if (key == "data_offsets") {
      ++offsets;
      bad = read_offsets(content, entry);
    }
    if (bad) return bad;
  }
  return dtypes == 1 && shapes == 1 && offsets == 1 ? simdjson::SUCCESS : simdjson::NO_SUCH_FIELD;
}

Result<std::vector<Entry>> read_header(std::string_view text) {
  // simdjson reads a little beyond the end of its input, which in a mapping may be another page.
  const simdjson::padded_string padded(text);
  dom::parser parser;
  dom::object object;
  if (const auto bad = parser.parse(padded).get(object))
    return fail(Error(ErrorCode::kCorrupt)
                << "the safetensors header is not the JSON object it should be ("
                << simdjson::error_message(bad) << ")");
  std::vector<Entry> entries;
  std::vector<std::string_view> names;  // into the parser's buffer
  entries.reserve(object.size());
  names.reserve(object.size());
  for (const auto& [name, value] : object) {
    names.push_back(name);
    if (name == kMetadataKey) continue;
    Entry& entry = entries.emplace_back();
    entry.name = name;
    if (const auto bad = read_entry(value, entry))
      return fail(Error(ErrorCode::kCorrupt)
                  << "the safetensors header describes tensor " << printable(name)
                  << " badly: dtype, shape and two data_offsets are needed, once each ("
                  << simdjson::error_message(bad) << ")");
  }
  // Sorting, not a hash set: names chosen to collide would make that quadratic.
  std::sort(names.begin(), names.end());
  if (const auto twin = std::adjacent_find(names.begin(), names.end()); twin != names.end())
    return fail(Error(ErrorCode::kCorrupt) << "the safetensors header names " << printable(*twin)
                                           << " twice; which of the two is meant cannot be told");
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin_bytes, a.end_bytes, a.name) <
           std::tie(b.begin_bytes, b.end_bytes, b.name);
  });
  return entries;
}

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes + 2 || bytes[kLengthBytes] != std::byte{'{'}) return false;
  // Generous about the length, so that a cut or oversized file gets open()'s message; but ordinary
  // text, which can have a brace there too, makes a length far beyond this.
  constexpr uint64_t kImplausibleHeaderBytes = uint64_t{1} << 40;
  const auto length = read_le<uint64_t>(bytes, 0);
  return length >= 2 && length < kImplausibleHeaderBytes;
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  const auto bytes = file->bytes();
  const auto length = bytes.size() < kLengthBytes ? 0 : read_le<uint64_t>(bytes, 0);
  if (length > kMaxHeaderBytes)
    return fail(Error(ErrorCode::kUnsupported, file->path(), 0)
                << "the safetensors header is said to be " << length
                << " bytes long; the format allows " << kMaxHeaderBytes);
  if (!range_fits(kLengthBytes, length, bytes.size()))
    return fail(Error(ErrorCode::kCorrupt, file->path(), 0)
                << "the safetensors header is said to be " << length
                << " bytes long but the file has only " << bytes.size()
                << "; it was probably cut short");
  auto entries = read_header(
      {reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, static_cast<size_t>(length)});
  if (!entries) return fail(entries.error().set_path(file->path()));
  return std::make_unique<Safetensors>(std::move(file), std::move(*entries), kLengthBytes + length);
}

}  // namespace ait::formats::safetensors
