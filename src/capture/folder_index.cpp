#include "capture/folder_index.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace ait::capture {
namespace {

// An index of two million folders is no larger.
constexpr size_t kMaxIndexBytes = size_t{48} << 20;

// linux/magic.h of older systems lacks some.
constexpr uint64_t kXfs = 0x58465342;
constexpr uint64_t kBtrfs = 0x9123683E;
constexpr uint64_t kOverlay = 0x794C7630;

bool keeps_times(const std::string& folder) {
  struct statfs status{};
  if (::statfs(folder.c_str(), &status) != 0) return false;
  const auto type = static_cast<uint64_t>(status.f_type);
  return type == EXT4_SUPER_MAGIC || type == TMPFS_MAGIC || type == kXfs || type == kBtrfs ||
         type == kOverlay;
}

// FNV-1a: only names files, which say themselves what they are of.
std::string name_of(const FolderIdentity& identity) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  };
  add(identity.path);
  add("\n" + std::to_string(identity.device) + "\n" + std::to_string(identity.inode));
  char text[32];
  std::snprintf(text, sizeof text, "%016llx.folders", static_cast<unsigned long long>(hash));
  return text;
}

bool identify(const std::string& folder, FolderIdentity& out) {
  const std::unique_ptr<char, void (*)(void*)> path(::realpath(folder.c_str(), nullptr), std::free);
  struct stat status{};
  if (path == nullptr || ::stat(path.get(), &status) != 0) return false;
  out = {path.get(), status.st_dev, status.st_ino};
  return true;
}

}  // namespace

FolderIndex::FolderIndex(const std::string& folder, FolderIndexRules rules)
    : folder_(folder), rules_(std::move(rules)) {
  if (!rules_.cache.is_usable() || !keeps_times(folder) || !identify(folder, identity_)) return;
  file_ = name_of(identity_);
  auto bytes = rules_.cache.read(file_, kMaxIndexBytes);
  if (!bytes) return;
  bytes_ = std::move(*bytes);
  known_.read(bytes_, identity_);
  shape_again_.resize(known_.shapes.size());
}

FolderIndex::Round::Round(const FolderIndex& index, const std::string& name)
    : index_(index),
      name_(name),
      folder_(index.known_.rounds.contains(name)
                  ? ::open((index.folder_ + "/" + name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)
                  : -1) {}

const KnownUnit* FolderIndex::Round::unchanged(const std::string& unit) const {
  if (folder_.get() < 0) return nullptr;
  const KnownUnit* known = index_.known_.find(name_, unit);
  if (known == nullptr) return nullptr;
  size_t place = 0;
  bool is_same = true;
  each_file(index_.known_.shapes[known->shape].folders, [&](std::string_view folder) {
    struct stat status{};
    is_same = is_same &&
              ::fstatat(folder_.get(), folder.data(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISDIR(status.st_mode) && status.st_dev == index_.identity_.device &&
              stamp_of(status) == stamp_at(known->stamps, place++);
  });
  return is_same ? known : nullptr;
}

FolderIndex::Listing FolderIndex::Round::list(const std::string& unit,
                                              std::vector<Error>& problems) const {
  Listing out;
  out.known = unchanged(unit);
  if (out.known != nullptr) {
    out.files = index_.known_.shapes[out.known->shape].files;
    return out;
  }
  const std::string path = index_.folder_ + "/" + name_ + "/" + unit;
  if (index_.file_.empty()) {
    out.files = list_files(path, problems);
    return out;
  }
  const size_t before = problems.size();
  ::clock_gettime(CLOCK_REALTIME, &out.trace.settled_before);
  out.trace.settled_before.tv_sec -= index_.rules_.settled_after.count();
  out.files = list_files(path, problems, &out.trace);
  out.is_whole = problems.size() == before;
  return out;
}

// The number of what lies in a unit, the same in all rounds where that is the same.
uint32_t FolderIndex::shape_of(const std::string& unit, const Listing& listing) {
  if (listing.known != nullptr) {
    const KnownShape& shape = known_.shapes[listing.known->shape];
    std::optional<uint32_t>& again = shape_again_[listing.known->shape];
    if (!again) again = add_shape(std::string(shape.folders), shape.files, unit.size());
    return *again;
  }
  std::string folders;
  each_file(listing.trace.folders, [&](std::string_view folder) {
    folders += unit;
    if (!folder.empty()) folders += '/';
    folders += folder;
    folders += '\0';
  });
  return add_shape(std::move(folders), listing.files, unit.size());
}

uint32_t FolderIndex::add_shape(std::string folders, std::string_view files, size_t unit_bytes) {
  const size_t folder_bytes = folders.size();
  const auto [found, is_new] = shapes_.try_emplace(std::move((folders += '\0') += files),
                                                   static_cast<uint32_t>(shapes_.size()));
  if (!is_new) return found->second;
  const std::string_view text = found->first;
  KnownShape& shape = kept_.shapes.emplace_back();
  shape.unit = text.substr(0, unit_bytes);
  shape.folders = text.substr(0, folder_bytes);
  shape.files = text.substr(folder_bytes + 1);
  each_file(shape.folders, [&](std::string_view) { ++shape.folder_count; });
  kept_bytes_ += text.size();
  return found->second;
}

void FolderIndex::keep(const std::string& round, const std::string& unit, Listing&& listing) {
  if (file_.empty() || is_too_large_) return;
  const bool is_known = listing.known != nullptr;
  if (!is_known && (!listing.is_whole || !listing.trace.is_settled ||
                    listing.trace.stamps.empty() || listing.trace.device != identity_.device))
    return;
  KnownUnit kept{shape_of(unit, listing), {}};
  if (is_known) {
    kept.stamps = listing.known->stamps;
  } else {
    std::string& stamps = texts_.emplace_back();
    stamps.reserve(listing.trace.stamps.size() * kStampBytes);
    for (const FolderStamp& stamp : listing.trace.stamps) append_stamp(stamps, stamp);
    kept.stamps = stamps;
  }
  folders_ += kept_.shapes[kept.shape].folder_count;
  kept_bytes_ += kept.stamps.size();
  ++(is_known ? reused_ : fresh_);
  auto place = kept_.rounds.find(round);
  if (place == kept_.rounds.end())
    place = kept_.rounds.try_emplace(texts_.emplace_back(round)).first;
  place->second.push_back(kept);
  if (kept_bytes_ > kMaxIndexBytes) forget();
}

// It would be too large to be kept: what was gathered is not needed any more.
void FolderIndex::forget() {
  is_too_large_ = true;
  kept_.clear();
  shapes_.clear();
  texts_.clear();
}

void FolderIndex::save() const {
  if (file_.empty() || is_too_large_ || folders_ < rules_.least_folders) return;
  if (fresh_ == 0 && reused_ == known_.units()) return;
  const std::string bytes = folder_index_bytes(kept_, identity_);
  if (bytes.size() <= kMaxIndexBytes) rules_.cache.write(file_, bytes);
}

}  // namespace ait::capture
