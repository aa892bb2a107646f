#include "convert/watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "capture/listing.h"
#include "convert/statistics.h"

namespace ait::convert {
namespace {

// A file that is still not complete after so many passes is warned of.
constexpr size_t kPatience = 20;

}  // namespace

// False for what is no regular file: links are left alone, whatever they lead to.
bool StatisticsConverter::stamp_of(const std::string& path, Stamp& stamp) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  constexpr int64_t kNanoseconds = 1'000'000'000;
  stamp = {static_cast<uint64_t>(status.st_size),
           status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
  return true;
}

Result<void> StatisticsConverter::convert(const std::string& path, const std::string& target,
                                          const Stamp& stamp) {
  // One that is there and is not older was made before this process was started.
  Stamp existing;
  if (!stamp_of(target, existing) || existing.time < stamp.time || !has_statistics(target)) {
    if (auto done = write_statistics(path, target); !done) return done;
    Stamp now;
    if (stamp_of(path, now) && now != stamp) {
      ::unlink(target.c_str());
      return fail(Error(ErrorCode::kCorrupt, path) << "was changed while it was read");
    }
    ++counts_.converted;
  }
  return remove(path, stamp);
}

Result<void> StatisticsConverter::remove(const std::string& path, const Stamp& stamp) {
  Stamp now;
  if (!options_.delete_source || !stamp_of(path, now)) return {};
  if (now != stamp)
    return fail(Error(ErrorCode::kCorrupt, path) << "was changed while it was read");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return fail(unwritable(path, "delete the file", errno));
  ++counts_.deleted;
  return {};
}

void StatisticsConverter::visit(const std::string& path,
                                const std::function<void(const Error&)>& warn) {
  const auto target = statistics_path(path);
  Stamp stamp;
  if (!target || !stamp_of(path, stamp)) return;
  const auto [place, is_new] = known_.try_emplace(path);
  State& state = place->second;
  const bool is_same = !is_new && state.stamp == stamp;
  if (!is_same) state = {stamp, 0, false};
  if (state.is_done || (options_.is_live && !is_same)) return;
  const auto done = convert(path, *target, stamp);
  if (done && options_.delete_source) {
    known_.erase(place);
    return;
  }
  const size_t patience = options_.is_live ? kPatience : 1;
  state.is_done = done || ++state.attempts == patience;
  if (done || !state.is_done) return;
  ++counts_.left;
  warn(done.error());
}

Result<void> StatisticsConverter::pass(const std::atomic<bool>& stop,
                                       const std::function<void(const Error&)>& warn) {
  if (auto root = capture::list_folder(root_); !root) return fail(root.error());
  std::vector<Error> problems;  // folders that come and go while a dump is written
  const std::string files = capture::list_files(root_, problems);
  capture::each_file(files, [&](std::string_view file) {
    if (!stop) visit(root_ + "/" + std::string(file), warn);
  });
  return {};
}

}  // namespace ait::convert
