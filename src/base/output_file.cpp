#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "base/folders.h"

namespace ait {
namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kFolderMode = 0750;
constexpr size_t kBufferBytes = size_t{64} * 1024;
constexpr int kMaxNumbered = 10000;

// Names of temporary files for the signal handler: the only thing in ait that has to be global,
// because a handler can reach nothing else. Fixed storage, since it may not allocate.
constexpr size_t kSlots = 16;
constexpr size_t kNoSlot = kSlots;
enum SlotState : uint8_t { kFree, kFilling, kArmed };
struct Slot {
  std::atomic<SlotState> state{kFree};
  std::array<char, PATH_MAX> path{};
};
std::array<Slot, kSlots> slots;
static_assert(std::atomic<SlotState>::is_always_lock_free);

size_t arm_slot(const std::string& path) {
  if (path.size() >= PATH_MAX) return kNoSlot;
  for (size_t i = 0; i < kSlots; ++i) {
    SlotState expected = kFree;
    if (!slots[i].state.compare_exchange_strong(expected, kFilling)) continue;
    std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].state = kArmed;
    return i;
  }
  return kNoSlot;  // more files at once than slots: this one would merely survive a Ctrl-C
}

void free_slot(size_t slot) {
  if (slot != kNoSlot) slots[slot].state = kFree;
}

Error cannot_write(const std::string& path, int error_number) {
  return Error(ErrorCode::kUnwritable, path)
         << "cannot be written: " << system_message(error_number);
}

Result<void> make_folder(const std::string& folder) {
  std::vector<std::string> made;
  const auto obstacle = make_folders(folder, kFolderMode, made);
  if (!obstacle) return {};
  if (obstacle->error_number == ENOTDIR)
    return fail(Error(ErrorCode::kUnwritable, obstacle->path)
                << "is not a folder; name a folder to write the report into");
  return fail(cannot_write(obstacle->path, obstacle->error_number));
}

// Renames without ever replacing. Returns 0 or errno.
int rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Network file systems lack the flag; a hard link refuses an existing name just as well.
  if (::link(from.c_str(), to.c_str()) != 0) return errno;
  ::unlink(from.c_str());
  return 0;
}

// "report.csv", "_2" -> "report_2.csv"
std::string with_suffix(const std::string& name, std::string_view suffix) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) dot = name.size();
  return name.substr(0, dot) + std::string(suffix) + name.substr(dot);
}

}  // namespace

OutputFile::OutputFile(std::string folder, std::string name, std::string temporary, int descriptor,
                       size_t slot)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      temporary_(std::move(temporary)),
      descriptor_(descriptor),
      slot_(slot) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
      temporary_(std::move(other.temporary_)),
      buffer_(std::move(other.buffer_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      slot_(std::exchange(other.slot_, kNoSlot)) {}

OutputFile::~OutputFile() { discard(); }

Result<OutputFile> OutputFile::create(const std::string& folder, const std::string& name) {
  static std::atomic<unsigned> counter{0};
  std::string where = folder.empty() ? "." : folder;
  if (auto made = make_folder(where); !made) return fail(made.error());
  if (where.back() != '/') where += '/';

  // Where machines share a folder, or a container comes back to it, another process of the same number may have
  // left its file there.
  constexpr int kTries = 1000;
  for (int tries = 1;; ++tries) {
    std::string temporary = where + "." + name + "." + std::to_string(::getpid()) + "." +
                            std::to_string(counter++) + ".tmp";
    const size_t slot = arm_slot(temporary);
    const int descriptor =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
    if (descriptor >= 0)
      return OutputFile(std::move(where), name, std::move(temporary), descriptor, slot);
    const int why = errno;
    free_slot(slot);
    if (why != EEXIST || tries == kTries) return fail(cannot_write(where + name, why));
  }
}

Result<void> OutputFile::write(std::string_view bytes) {
  buffer_ += bytes;
  return buffer_.size() < kBufferBytes ? Result<void>{} : flush();
}

Result<void> OutputFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(cannot_write(folder_ + name_, errno));
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
  return {};
}

Result<std::string> OutputFile::finish(std::string_view suffix) {
  name_ = with_suffix(name_, suffix);
  if (auto flushed = flush(); !flushed) {
    discard();
    return fail(flushed.error());
  }
  int why = close_synced();
  std::string path;
  if (why == 0) {
    for (int number = 0; number < kMaxNumbered; ++number) {
      std::string suffix_number = "_";
      suffix_number += std::to_string(number);
      path = folder_ + (number == 0 ? name_ : with_suffix(name_, suffix_number));
      why = rename_new(temporary_, path);
      if (why != EEXIST) break;
    }
  }
  return renamed(path, why);
}

Result<std::string> OutputFile::finish_as(const std::string& path) {
  if (auto flushed = flush(); !flushed) {
    discard();
    return fail(flushed.error());
  }
  int why = close_synced();
  if (why == 0 && ::rename(temporary_.c_str(), path.c_str()) != 0) why = errno;
  return renamed(path, why);
}

// Returns 0 or errno.
int OutputFile::close_synced() {
  // Delayed allocation and network file systems report a full disk only here; EINVAL means "no such
  // thing".
  const bool synced = ::fsync(descriptor_) == 0 || errno == EINVAL;
  int why = synced ? 0 : errno;
  if (::close(std::exchange(descriptor_, -1)) != 0 && why == 0) why = errno;
  return why;
}

Result<std::string> OutputFile::renamed(const std::string& path, int error_number) {
  if (error_number != 0) ::unlink(temporary_.c_str());
  free_slot(std::exchange(slot_, kNoSlot));
  if (error_number != 0) return fail(cannot_write(folder_ + name_, error_number));
  return path;
}

void OutputFile::discard() {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(temporary_.c_str());
  free_slot(std::exchange(slot_, kNoSlot));
}

void remove_unfinished_files() noexcept {
  for (const Slot& slot : slots)
    if (slot.state == kArmed) ::unlink(slot.path.data());
}

}  // namespace ait
