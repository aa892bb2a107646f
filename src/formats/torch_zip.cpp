#include "formats/torch_zip.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/torch_tensors.h"
#include "formats/zip.h"

namespace ait::formats::torch_zip {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kLocalNameLengthAt = 26;
// How much of the archive's end is searched for the pickle's name when it is not the first member.
constexpr size_t kDirectorySearchBytes = size_t{1} << 20;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TorchZip : public TorchFile {
 public:
  TorchZip(ZipArchive archive, std::string folder, OwnedBytes pickle_bytes,
           pickle::Document document, bool swapped)
      : TorchFile(archive.path(), std::move(document)),
        archive_(std::move(archive)),
        folder_(std::move(folder)),
        pickle_bytes_(std::move(pickle_bytes)),
        byte_swapped_(swapped) {}

  using TorchFile::collect;

  std::string_view format() const override { return "torch"; }

 private:
  Result<OwnedBytes> storage(const StorageReference& reference) const override {
    const std::string name = folder_ + "/data/" + std::string(reference.key);
    const ZipMember* member = archive_.find(name);
    if (member == nullptr)
      return fail(Error(ErrorCode::kCorrupt)
                  << "its storage " << printable(name) << " is missing from the archive");
    if (reference.is_view)
      return fail(Error(ErrorCode::kCorrupt)
                  << "its storage is a view, which only the older format has");
    const size_t unit = reference.type->dtype ? size_bytes(*reference.type->dtype) : 1;
    const auto bytes = checked_mul(reference.elements, unit);
    if (!bytes || *bytes > member->uncompressed_bytes)
      return fail(Error(ErrorCode::kCorrupt)
                  << "its storage " << printable(name) << " should hold " << reference.elements
                  << " elements but has only " << member->uncompressed_bytes
                  << " bytes; the file is damaged");
    return archive_.contents(*member);
  }
  bool byte_swapped() const override { return byte_swapped_; }
  std::shared_ptr<const void> owner() const override { return pickle_bytes_.owner; }

  ZipArchive archive_;
  std::string folder_;
  OwnedBytes pickle_bytes_;
  bool byte_swapped_;
};

// The one folder that all members lie in, as "archive"; its name is whatever the file was called.
const ZipMember* find_pickle(const ZipArchive& archive) {
  for (const ZipMember& member : archive.members()) {
    const std::string_view name = member.name;
    if (name.ends_with(kPickleName) && name.find('/') == name.size() - kPickleName.size())
      return &member;
  }
  return nullptr;
}

Result<bool> is_big_endian(const ZipArchive& archive, const std::string& folder) {
  const ZipMember* member = archive.find(folder + "/byteorder");
  if (member == nullptr) return false;
  auto contents = archive.contents(*member);
  if (!contents) return fail(contents.error());
  const std::string_view order = as_text(contents->bytes);
  if (order != "little" && order != "big")
    return fail(Error(ErrorCode::kCorrupt, archive.path())
                << "the byte order is given as \"" << printable(order, 20)
                << "\" where little or big is expected");
  return order == "big";
}

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  if (!ZipArchive::sniff(bytes) || bytes.size() < kLocalHeaderBytes) return false;
  // torch writes the pickle first; other programs that repack an archive may not.
  const size_t length = read_le<uint16_t>(bytes, kLocalNameLengthAt);
  if (range_fits(kLocalHeaderBytes, length, bytes.size()) &&
      as_text(bytes.subspan(kLocalHeaderBytes, length)).ends_with(kPickleName))
    return true;
  const auto tail = bytes.last(std::min(bytes.size(), kDirectorySearchBytes));
  return as_text(tail).find(kPickleName) != std::string_view::npos;
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  const auto whole = file->bytes();
  auto archive = ZipArchive::open(std::move(file));
  if (!archive) return fail(archive.error());
  const std::string& path = archive->path();
  const ZipMember* member = find_pickle(*archive);
  if (member == nullptr)
    return fail(Error(ErrorCode::kCorrupt, path)
                << "the archive has no data.pkl in its folder; it was not written by torch.save");
  const std::string folder = member->name.substr(0, member->name.size() - kPickleName.size());
  if (archive->find(folder + "/constants.pkl") != nullptr)
    return fail(Error(ErrorCode::kUnsupported, path)
                << "is a TorchScript program, not a set of tensors; save its weights with "
                   "torch.save(model.state_dict(), path)");

  auto contents = archive->contents(*member);
  if (!contents) return fail(contents.error());
  auto big_endian = is_big_endian(*archive, folder);
  if (!big_endian) return fail(big_endian.error());
  // A stored pickle is part of the file and its errors can say where; an inflated one is not.
  const std::byte* start = contents->bytes.data();
  const bool in_file = start >= whole.data() && start < whole.data() + whole.size();
  const pickle::Source source{
      path, in_file ? static_cast<uint64_t>(start - whole.data()) : Error::kNoOffset};
  auto document = pickle::parse(contents->bytes, source);
  if (!document) return fail(document.error());

  const bool swapped = *big_endian != (std::endian::native == std::endian::big);
  auto result = std::make_unique<TorchZip>(*std::move(archive), folder, *std::move(contents),
                                           *std::move(document), swapped);
  if (auto collected = result->collect(whole.size()); !collected) return fail(collected.error());
  return result;
}

}  // namespace ait::formats::torch_zip
