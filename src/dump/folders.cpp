#include "dump/folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/folders.h"
#include "launch/process.h"
#include "record/dump_names.h"

namespace ait::dump {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kFolderMode = 0750;
constexpr int kMostFolders = 10'000;  // of launchers that have the same pid

Error cannot_make(const std::string& path, int error_number) {
  return Error(ErrorCode::kUnwritable, path)
         << "the folder cannot be made: " << system_message(error_number);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    out.push_back(at->path());
  return out;
}

// For reading: one that is open for writing would keep the command from remounting the disk.
Descriptor open_folder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Until the descriptor is closed, or the process ends in whatever way.
bool take_lock(const Descriptor& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

bool is_there(const Descriptor& folder) {
  struct stat status{};
  return ::fstat(folder.get(), &status) == 0 && status.st_nlink > 0;
}

// Those of runs for which `over(run)` is true.
template <typename Over>
void remove_claims(const std::string& dump, Over over) {
  const fs::path folder = fs::path(dump) / record::kClaimsFolder;
  for (const fs::path& claim : entries_of(folder)) {
    std::error_code error;
    const std::string owner = fs::read_symlink(claim, error).native();
    if (!error && over(owner.substr(0, owner.find(':')))) ::unlink(claim.c_str());
  }
  ::rmdir(folder.c_str());
}

std::string with_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  const bool starts_at_home = path == "~" || path.starts_with("~/");
  return starts_at_home && home != nullptr ? home + path.substr(1) : path;
}

}  // namespace

Result<void> MadeFolders::make(const std::string& path) {
  const auto obstacle = make_folders(path, kFolderMode, made_);
  if (!obstacle) return {};
  if (obstacle->error_number == ENOTDIR)
    return fail(Error(ErrorCode::kUnwritable, obstacle->path)
                << "is not a folder, so that nothing can be written below it");
  return fail(cannot_make(path, obstacle->error_number));
}

void MadeFolders::remove_empty() const {
  std::for_each(made_.rbegin(), made_.rend(),
                [](const std::string& path) { ::rmdir(path.c_str()); });
}

Result<void> make_dump_folder(const std::string& path, MadeFolders& made) {
  if (auto ready = made.make(path); !ready) return ready;
  struct stat link{};
  struct stat folder{};
  if (::lstat(path.c_str(), &link) != 0 || ::stat(path.c_str(), &folder) != 0)
    return fail(cannot_make(path, errno));
  for (const struct stat& each : {link, folder})
    if (each.st_uid != ::geteuid())
      return fail(Error(ErrorCode::kRefused, path)
                  << "belongs to user " << each.st_uid
                  << ", who could change what is written there; give -o another folder");
  return {};
}

Result<std::string> prepare_output(const std::string& typed, MadeFolders& made) {
  const std::string path = with_home(typed);
  if (path.empty()) return fail(Error(ErrorCode::kUsage) << "-o names no folder");
  if (auto ok = made.make(path); !ok) return fail(ok.error());
  std::error_code error;
  const fs::path absolute = fs::canonical(path, error);
  if (error)
    return fail(Error(ErrorCode::kUnwritable, path) << "cannot be used: " << error.message());
  if (::access(absolute.c_str(), W_OK | X_OK) != 0)
    return fail(Error(ErrorCode::kUnwritable, path)
                << "nothing can be written there: " << system_message(errno)
                << "; give -o another folder");
  return absolute.native();
}

ScratchFolder::ScratchFolder(std::string path, Descriptor lock)
    : path_(std::move(path)), lock_(std::move(lock)) {
  std::error_code ignored;
  made_at_ = fs::last_write_time(path_, ignored);
}

Result<ScratchFolder> ScratchFolder::in(const std::string& dump) {
  const std::string base = dump + "/" + record::kRunStem + std::to_string(::getpid());
  for (int number = 0;; ++number) {
    const std::string path = number == 0 ? base : base + "_" + std::to_string(number);
    if (::mkdir(path.c_str(), kFolderMode) != 0) {
      if (errno == EEXIST && number < kMostFolders) continue;
      return fail(cannot_make(path, errno));
    }
    Descriptor lock = open_folder(path);
    if (lock.get() < 0 && errno != ENOENT) return fail(cannot_make(path, errno));
    // Whoever clears leftovers may have been here first; then the folder is gone or about to be. On
    // network file systems, which lock no folders, nobody clears any.
    if (lock.get() >= 0 && (take_lock(lock) || errno != EWOULDBLOCK) && is_there(lock))
      return ScratchFolder(path, std::move(lock));
  }
}

Result<ScratchFolder> ScratchFolder::temporary() {
  std::error_code error;
  std::string path = fs::temp_directory_path(error) / "ait_run_XXXXXX";
  if (error || ::mkdtemp(path.data()) == nullptr)
    return fail(cannot_make(path, error ? error.value() : errno));
  return ScratchFolder(path, Descriptor(-1));
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::move(other.lock_)),
      made_at_(other.made_at_),
      kept_(other.kept_) {
  other.path_.clear();
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty() || kept_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void clear_leftovers(const std::string& dump) {
  for (const fs::path& path : entries_of(dump)) {
    if (!path.filename().native().starts_with(record::kRunStem)) continue;
    std::error_code ignored;
    const Descriptor lock = open_folder(path.native());
    if (lock.get() >= 0 && take_lock(lock) &&
        launch::processes_with(record::kScratchVariable + ("=" + path.native())).empty())
      fs::remove_all(path, ignored);
  }
  remove_claims(dump, [&](const std::string& run) {
    std::error_code ignored;
    return !run.empty() && !fs::exists(dump + "/" + run, ignored);
  });
}

void release_claims(const std::string& dump, const std::string& scratch) {
  const std::string name = fs::path(scratch).filename().native();
  remove_claims(dump, [&](const std::string& run) { return run == name; });
}

}  // namespace ait::dump
