#include "formats/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/gguf_blocks.h"
#include "formats/little_endian.h"

namespace ait::formats::gguf {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxKeyBytes = 65536;
// ggml itself has four.
constexpr uint32_t kMaxDimensions = 8;
constexpr size_t kMaxArrayDepth = 8;

enum ValueType : uint32_t { kUInt32 = 4, kString = 8, kArray = 9, kValueTypes = 13 };
// Bytes of a value of each type; 0: a string or an array.
constexpr std::array<uint64_t, kValueTypes> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

struct Entry {
  std::string name;
  Shape shape;
  uint32_t type = 0;
  uint64_t offset_bytes = 0;  // from the beginning of the data
};

struct Header {
  std::vector<Entry> entries;
  uint64_t alignment = kDefaultAlignment;
  uint64_t data_bytes_at = 0;
};

class Parser {
 public:
  explicit Parser(std::span<const std::byte> bytes) : bytes_(bytes), at_(kMagic.size()) {}

  Result<Header> header() {
    Header out;
    uint32_t version = 0;
    uint64_t tensors = 0;
    uint64_t pairs = 0;
    if (!take(version)) return fail(cut_off());
    if (version != 2 && version != 3) return fail(unknown(version));
    if (!take(tensors) || !take(pairs)) return fail(cut_off());
    for (uint64_t i = 0; i < pairs; ++i)
      if (auto read = pair(out); !read) return fail(read.error());
    for (uint64_t i = 0; i < tensors; ++i) {
      auto read = entry();
      if (!read) return fail(read.error());
      out.entries.push_back(std::move(*read));
    }
    const uint64_t over = at_ % out.alignment;
    out.data_bytes_at = at_ + (over > 0 ? out.alignment - over : 0);
    return out;
  }

 private:
  Error cut_off() const {
    return Error(ErrorCode::kCorrupt, {}, at_)
           << "the GGUF header ends too early; the file was probably cut short";
  }
  static Error unknown(uint32_t version) {
    Error error(ErrorCode::kUnsupported);
    if ((version & 0xFFFF) == 0 && version != 0)
      error << "is a GGUF file of a big-endian machine, which ait does not read";
    else
      error << "is of GGUF version " << version << "; versions 2 and 3 are read";
    return error;
  }

  template <typename T>
  bool take(T& value) {
    if (!range_fits(at_, sizeof(T), bytes_.size())) return false;
    value = read_le<T>(bytes_, at_);
    at_ += sizeof(T);
    return true;
  }
  bool skip(uint64_t count) {
    if (!range_fits(at_, count, bytes_.size())) return false;
    at_ += count;
    return true;
  }
  Result<std::string_view> text(size_t max_bytes) {
    uint64_t length = 0;
    if (!take(length)) return fail(cut_off());
    const uint64_t begin = at_;
    if (!skip(length)) return fail(cut_off());
    if (length > max_bytes)
      return fail(Error(ErrorCode::kCorrupt, {}, begin)
                  << "has a name of " << length << " bytes; no GGUF file has");
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + begin, length);
  }

  Result<void> skip_value(uint32_t type, size_t depth) {
    if (type == kString) {
      uint64_t length = 0;
      if (!take(length) || !skip(length)) return fail(cut_off());
      return {};
    }
    if (type == kArray) {
      uint32_t inner = 0;
      uint64_t count = 0;
      if (!take(inner) || !take(count)) return fail(cut_off());
      if (depth == kMaxArrayDepth || inner >= kValueTypes) return fail(bad_value());
      if (kValueBytes[inner] > 0) {
        const auto length = checked_mul(count, kValueBytes[inner]);
        if (!length || !skip(*length)) return fail(cut_off());
        return {};
      }
      // Each takes eight bytes at least, so the file bounds the loop.
      for (uint64_t i = 0; i < count; ++i)
        if (auto skipped = skip_value(inner, depth + 1); !skipped) return skipped;
      return {};
    }
    if (type >= kValueTypes) return fail(bad_value());
    if (!skip(kValueBytes[type])) return fail(cut_off());
    return {};
  }
  Error bad_value() const {
    return Error(ErrorCode::kCorrupt, {}, at_)
           << "the GGUF header has a value of an unknown type; the file is damaged";
  }

  Result<void> pair(Header& out) {
    const auto key = text(kMaxKeyBytes);
    if (!key) return fail(key.error());
    uint32_t type = 0;
    if (!take(type)) return fail(cut_off());
    if (*key != kAlignmentKey || type != kUInt32) return skip_value(type, 0);
    uint32_t alignment = 0;
    if (!take(alignment)) return fail(cut_off());
    if (alignment > kMaxAlignment || !std::has_single_bit(alignment))
      return fail(Error(ErrorCode::kCorrupt, {}, at_)
                  << "has the impossible alignment " << alignment);
    out.alignment = alignment;
    return {};
  }

  Result<Entry> entry() {
    Entry out;
    const auto name = text(kMaxNameBytes);
    if (!name) return fail(name.error());
    out.name = *name;
    uint32_t dimensions = 0;
    if (!take(dimensions)) return fail(cut_off());
    if (dimensions > kMaxDimensions)
      return fail(Error(ErrorCode::kCorrupt, {}, at_)
                  << "has a tensor of " << dimensions << " dimensions; the file is damaged");
    for (uint32_t i = 0; i < dimensions; ++i) {
      uint64_t size = 0;
      if (!take(size)) return fail(cut_off());
      if (size > static_cast<uint64_t>(INT64_MAX))
        return fail(Error(ErrorCode::kCorrupt, {}, at_) << "has a tensor of impossible size");
      out.shape.insert(out.shape.begin(), static_cast<int64_t>(size));
    }
    if (!take(out.type) || !take(out.offset_bytes)) return fail(cut_off());
    return out;
  }

  std::span<const std::byte> bytes_;
  uint64_t at_;
};

class Gguf : public TensorFile {
 public:
  Gguf(std::shared_ptr<const MappedFile> file, Header header)
      : file_(std::move(file)), header_(std::move(header)) {}

  std::string_view format() const override { return "GGUF"; }
  size_t size() const override { return header_.entries.size(); }
  std::string name(size_t index) const override { return header_.entries[index].name; }

  Result<Tensor> load(size_t index) const override {
    const Entry& entry = header_.entries[index];
    const auto found = find(entry);
    if (!found) return fail(found.error());
    const auto& [type, bytes] = *found;
    if (type->plain) {
      auto tensor = Tensor::contiguous(file_, bytes, *type->plain, entry.shape);
      if (!tensor) return fail(tensor.error().set_path(file_->path()));
      tensor->set_byte_swapped(kLittleEndianIsForeign);
      return tensor;
    }
    const size_t blocks = bytes.size() / type->bytes;
    auto decoded = MappedFile::temporary(
        blocks * type->elements * sizeof(float), [&](std::span<std::byte> out) -> Result<void> {
          std::vector<float> values(type->elements);
          const size_t stretch = values.size() * sizeof(float);
          for (size_t i = 0; i < blocks; ++i) {
            type->decode(bytes.subspan(i * type->bytes, type->bytes), values.data());
            std::memcpy(out.data() + i * stretch, values.data(), stretch);
          }
          return {};
        });
    if (!decoded) return fail(decoded.error());
    const auto span = (*decoded)->bytes();
    return Tensor::contiguous(*std::move(decoded), span, DType::kFloat32, entry.shape);
  }

  Result<Description> describe(size_t index) const override {
    const Entry& entry = header_.entries[index];
    const auto found = find(entry);
    if (!found) return fail(found.error());
    return Description{found->first->plain.value_or(DType::kFloat32), entry.shape, true,
                       std::nullopt};
  }

 private:
  Error error(ErrorCode code, const Entry& entry) const {
    return Error(code, file_->path()) << "tensor " << printable(entry.name) << " ";
  }

  // Its type, which is one that is read, and exactly its bytes.
  Result<std::pair<const BlockType*, std::span<const std::byte>>> find(const Entry& entry) const {
    const BlockType* type = find_type(entry.type);
    if (type == nullptr)
      return fail(error(ErrorCode::kUnsupported, entry)
                  << "has the type number " << entry.type << ", which ait does not know");
    if (!type->is_read())
      return fail(error(ErrorCode::kUnsupported, entry)
                  << "is quantised as " << type->name
                  << ", which ait does not decode; Q8_0, Q4_0, Q4_K and Q6_K are");
    const auto elements = count_elements(entry.shape);
    const bool has_whole_blocks =
        elements &&
        (type->elements == 1 ||
         (!entry.shape.empty() && static_cast<uint64_t>(entry.shape.back()) % type->elements == 0));
    const auto length =
        has_whole_blocks ? checked_mul(*elements / type->elements, type->bytes) : std::nullopt;
    if (!length)
      return fail(error(ErrorCode::kCorrupt, entry)
                  << "of type " << type->name << " has the impossible shape "
                  << shape_text(entry.shape));
    const auto bytes = file_->bytes();
    const uint64_t data_at = std::min<uint64_t>(header_.data_bytes_at, bytes.size());
    const auto data = bytes.subspan(data_at);
    if (!range_fits(entry.offset_bytes, *length, data.size()))
      return fail(error(ErrorCode::kCorrupt, entry)
                  << "should have " << *length << " bytes at byte " << entry.offset_bytes
                  << " of the data, of which there are " << data.size()
                  << "; the file was probably cut short");
    return std::pair(type, data.subspan(entry.offset_bytes, *length));
  }

  std::shared_ptr<const MappedFile> file_;
  Header header_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  auto header = Parser(file->bytes()).header();
  if (!header) return fail(header.error().set_path(file->path()));
  return std::make_unique<Gguf>(std::move(file), std::move(*header));
}

}  // namespace ait::formats::gguf
