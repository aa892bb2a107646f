#include "formats/npz.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/npy.h"
#include "formats/zip.h"

namespace ait::formats::npz {
namespace {

constexpr std::string_view kSuffix = ".npy";

class Npz : public TensorFile {
 public:
  explicit Npz(ZipArchive archive) : archive_(std::move(archive)) {
    for (size_t i = 0; i < archive_.members().size(); ++i)
      if (archive_.members()[i].name.ends_with(kSuffix)) arrays_.push_back(i);
  }

  std::string_view format() const override { return "npz"; }
  size_t size() const override { return arrays_.size(); }

  std::string name(size_t index) const override {
    const std::string& full = member(index).name;
    return full.substr(0, full.size() - kSuffix.size());
  }

  Result<Tensor> load(size_t index) const override {
    const auto contents = archive_.contents(member(index));
    if (!contents) return fail(contents.error());
    auto array = npy::parse(contents->owner, contents->bytes);
    if (!array)  // its offset counts from the start of the member, so it is left out
      return fail(Error(array.error().code(), archive_.path())
                  << "array " << printable(name(index)) << ": " << array.error().message());
    return std::move(array->tensor);
  }

  std::string note() const override {
    const size_t others = archive_.members().size() - arrays_.size();
    if (others == 0) return {};
    return "members that do not end in .npy are ignored: " + std::to_string(others);
  }

 private:
  const ZipMember& member(size_t index) const { return archive_.members()[arrays_[index]]; }

  ZipArchive archive_;
  std::vector<size_t> arrays_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) { return ZipArchive::sniff(bytes); }

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  const std::string path = file->path();
  auto archive = ZipArchive::open(std::move(file));
  if (!archive) return fail(archive.error());
  const size_t members = archive->members().size();
  auto npz = std::make_unique<Npz>(std::move(*archive));
  if (members > 0 && npz->size() == 0)
    return fail(
        Error(ErrorCode::kUnsupported, path)
        << "is a zip archive with neither torch tensors nor .npy arrays in it; unpack it and give "
           "the files inside");
  return npz;
}

}  // namespace ait::formats::npz
