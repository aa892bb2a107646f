#include "formats/torch_legacy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/torch_tensors.h"

namespace ait::formats::torch_legacy {
namespace {

// LONG1, ten bytes, the number, STOP. Before it stand the protocol and perhaps a frame: up to 11
// bytes.
constexpr std::array<unsigned char, 13> kMagic = {0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                                  0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};
constexpr size_t kMagicLatestAt = 11;
constexpr int64_t kProtocolVersion = 1001;
constexpr size_t kCountBytes = 8;

class TorchLegacy : public TorchFile {
 public:
  TorchLegacy(std::shared_ptr<const MappedFile> file, pickle::Document document)
      : TorchFile(file->path(), std::move(document)), file_(std::move(file)) {}

  std::string_view format() const override { return "torch (legacy)"; }

  using TorchFile::collect;

  // Finds where each storage lies. One that is cut off hides itself and those behind it, not those
  // before.
  Result<void> locate_storages(const pickle::Document& keys, uint64_t offset_bytes) {
    const std::unordered_map<std::string_view, size_t> units = element_sizes();
    const auto bytes = file_->bytes();
    if (keys.kind(keys.root()) != pickle::Kind::kList)
      return fail(Error(ErrorCode::kCorrupt, path(), offset_bytes)
                  << "a list of storage keys is expected before the data; the file is damaged");
    for (const pickle::Id id : keys.items(keys.root())) {
      if (keys.kind(id) != pickle::Kind::kText)
        return fail(Error(ErrorCode::kCorrupt, path(), offset_bytes)
                    << "a storage key is not text; the file is damaged");
      const auto unit = units.find(keys.text(id));
      // Without a tensor that uses it nobody knows how wide its elements are.
      if (unit == units.end()) break;
      if (!range_fits(offset_bytes, kCountBytes, bytes.size())) break;
      const auto count = read_le<uint64_t>(bytes, offset_bytes);
      offset_bytes += kCountBytes;
      const auto length = checked_mul(count, unit->second);
      if (!length || !range_fits(offset_bytes, *length, bytes.size())) break;
      storages_.emplace(keys.text(id), bytes.subspan(offset_bytes, *length));
      offset_bytes += *length;
    }
    return {};
  }

 private:
  // The pickle names a storage's type wherever it uses it; the first use is what was written.
  std::unordered_map<std::string_view, size_t> element_sizes() const {
    std::unordered_map<std::string_view, size_t> units;
    for (pickle::Id id = 0; id < document().size(); ++id) {
      if (document().kind(id) != pickle::Kind::kPersistent) continue;
      const auto reference = storage_reference(document(), id);
      if (reference) units.emplace(reference->key, element_bytes(*reference->type));
    }
    return units;
  }

  // Quantised storages, too, must be stepped over.
  static size_t element_bytes(const pickle::Global& type) {
    if (type.dtype) return size_bytes(*type.dtype);
    return type.name == "QInt32Storage" ? 4 : 1;
  }

  Result<OwnedBytes> storage(const StorageReference& reference) const override {
    const auto found = storages_.find(reference.key);
    if (found == storages_.end())
      return fail(Error(ErrorCode::kCorrupt)
                  << "its storage is not in the file, which was probably cut short");
    const size_t unit = element_bytes(*reference.type);
    const auto length = checked_mul(reference.elements, unit);
    const auto offset = checked_mul(reference.view_offset_elements, unit);
    if (!length || !offset || !range_fits(*offset, *length, found->second.size()))
      return fail(Error(ErrorCode::kCorrupt)
                  << "its storage should hold " << reference.elements << " elements but has only "
                  << found->second.size() << " bytes; the file is damaged");
    return OwnedBytes{file_, found->second.subspan(*offset, *length)};
  }
  bool byte_swapped() const override { return kLittleEndianIsForeign; }
  std::shared_ptr<const void> owner() const override { return file_; }

  std::shared_ptr<const MappedFile> file_;
  std::unordered_map<std::string_view, std::span<const std::byte>> storages_;
};

std::optional<size_t> magic_at(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes[0] != std::byte{0x80}) return std::nullopt;
  const auto magic = std::as_bytes(std::span(kMagic));
  const auto head = bytes.first(std::min(bytes.size(), kMagicLatestAt + kMagic.size()));
  const auto found = std::search(head.begin(), head.end(), magic.begin(), magic.end());
  if (found == head.end()) return std::nullopt;
  return static_cast<size_t>(found - head.begin());
}

}  // namespace

bool sniff(std::span<const std::byte> bytes) { return magic_at(bytes).has_value(); }

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  const auto bytes = file->bytes();
  const auto magic = magic_at(bytes);
  if (!magic)
    return fail(Error(ErrorCode::kCorrupt, file->path(), 0)
                << "does not start with torch's magic number");
  uint64_t at = *magic + kMagic.size();
  const auto next_pickle = [&]() -> Result<pickle::Document> {
    auto document = pickle::parse(bytes.subspan(at), {file->path(), at});
    if (document) at += document->end_bytes();
    return document;
  };

  auto version = next_pickle();
  if (!version) return fail(version.error());
  if (version->kind(version->root()) != pickle::Kind::kInt ||
      version->integer(version->root()) != kProtocolVersion)
    return fail(
        Error(ErrorCode::kUnsupported, file->path())
        << "is of an unknown version of torch's old format; save it again with a current torch");
  // What the machine was like does not matter: storages are little-endian on every machine.
  if (auto machine = next_pickle(); !machine) return fail(machine.error());
  auto tensors = next_pickle();
  if (!tensors) return fail(tensors.error());
  auto keys = next_pickle();
  if (!keys) return fail(keys.error());

  auto result = std::make_unique<TorchLegacy>(file, *std::move(tensors));
  if (auto collected = result->collect(bytes.size()); !collected) return fail(collected.error());
  if (auto located = result->locate_storages(*keys, at); !located) return fail(located.error());
  return result;
}

}  // namespace ait::formats::torch_legacy
