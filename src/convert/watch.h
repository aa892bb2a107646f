// Replaces the files of a dump by statistics, while the dump goes on or afterwards.
//
//   StatisticsConverter converter("msit_ge_dump", {.delete_source = true, .is_live = true});
//   auto done = converter.run(stop, warn);  // kNotFound: there is no such folder
//
// A file is converted once it is complete: all the bytes that its header asks for are there and, of a
// live dump, it is as it was at the pass before. The new file is on the disk under its name before the
// old one is deleted: whenever the process is killed, one of them is there. Where both are, the next
// pass deletes the old one, if that is asked for.
//
// Tensors are measured one at a time, on one core; a few threads wait for the disk meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace ait::convert {

enum class StatisticsKind : uint8_t {
  kExtremes,  // {name}_min_max.npz for what GE dumped, {name}_min_max.npy for an .npy file
  kTable,     // {name}_stat.csv: type, shape, maximum, minimum, mean and norm
};

struct StatisticsOptions {
  StatisticsKind kind = StatisticsKind::kExtremes;
  bool delete_source = false;
  bool is_live = false;  // somebody may still be writing
};

struct StatisticsCounts {
  size_t converted = 0;
  size_t deleted = 0;
  size_t left = 0;  // files that have no statistics or could not be read; each was warned of
};

class StatisticsConverter {
 public:
  StatisticsConverter(std::string root, StatisticsOptions options)
      : root_(std::move(root)), options_(options) {}

  // Looks at every file once; ends after the current one when `stop` becomes true. Fails where the
  // folder cannot be listed. What is wrong with single files is told to `warn`, once.
  Result<void> pass(const std::atomic<bool>& stop, const std::function<void(const Error&)>& warn);

  // One pass; of a live dump, passes until `stop` becomes true or the folder holds a file
  // ".ait_convert_stop".
  Result<void> run(const std::atomic<bool>& stop, const std::function<void(const Error&)>& warn);

  const StatisticsCounts& counts() const { return counts_; }

 private:
  struct Stamp {
    uint64_t size = 0;
    int64_t time = 0;  // of the last change, in nanoseconds

    bool operator==(const Stamp&) const = default;
  };
  struct State {
    Stamp stamp;
    size_t attempts = 0;
    bool is_done = false;
  };

  // A file that is ready, and what became of it.
  struct Job {
    std::string path;
    std::string target;
    Stamp stamp;
    bool has_written = false;
    Result<void> done;
  };

  static bool stamp_of(const std::string& path, Stamp& stamp);
  static bool is_changed(const Job& job);
  static Result<void> changed(const Job& job);
  std::optional<Job> job_of(const std::string& path);
  Result<void> convert(Job& job);
  Result<void> remove(const Job& job);
  void convert_all(std::vector<Job>& jobs, const std::atomic<bool>& stop);
  void finish(const Job& job, const std::function<void(const Error&)>& warn);

  std::string root_;
  StatisticsOptions options_;
  StatisticsCounts counts_;
  std::unordered_map<std::string, State> known_;
  std::mutex measuring_;
};

}  // namespace ait::convert
