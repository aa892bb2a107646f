#include "dump/forecast.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/checked.h"
#include "launch/machine.h"
#include "record/atomic_file.h"

namespace ait::dump {
namespace {

// The measurement is to be noticed neither by the user nor by the disk.
constexpr uint64_t kMostTrialBytes = uint64_t{64} << 20;
constexpr std::chrono::milliseconds kMostTrialTime{500};
constexpr uint64_t kMostTrialFiles = 1000;

// What the smallest file occupies on the usual file systems.
constexpr uint64_t kBlockBytes = 4096;

uint64_t product(uint64_t a, uint64_t b) { return checked_mul(a, b).value_or(UINT64_MAX); }

// Seconds that a file of that size takes.
Result<double> time_to_write(const std::string& folder, uint64_t file_bytes) {
  using Clock = std::chrono::steady_clock;
  const uint64_t trial_bytes = std::min(file_bytes, kMostTrialBytes);
  std::string data(trial_bytes, '\x5a');
  const iovec part{data.data(), data.size()};
  uint64_t files = 0;
  uint64_t written = 0;
  const auto start = Clock::now();
  std::chrono::duration<double> passed{0};
  do {
    const std::string path = folder + "/trial_" + std::to_string(files);
    const auto status = record::write_file(path.c_str(), &part, 1);
    passed = Clock::now() - start;
    ::unlink(path.c_str());
    if (!status.ok()) return fail(unwritable(path, status.step, status.error_number));
    ++files;
    written += trial_bytes;
  } while (passed < kMostTrialTime && files < kMostTrialFiles &&
           written + trial_bytes <= kMostTrialBytes);
  const double scale =
      static_cast<double>(file_bytes) / static_cast<double>(std::max<uint64_t>(trial_bytes, 1));
  return passed.count() / static_cast<double>(files) * std::max(scale, 1.0);
}

}  // namespace

uint64_t count_rounds(std::vector<Rounds> ranges, uint64_t last) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t count = 0;
  uint64_t next = 0;  // the first round that has not been counted
  for (const auto& [begin, end] : ranges) {
    const uint64_t from = std::max(begin, next);
    const uint64_t to = std::min(end, last);
    if (from > to) continue;
    count += to - from + 1;
    next = to + 1;
  }
  return count;
}

Result<Forecast> forecast(const Options& options, uint64_t round_tensors, uint64_t round_bytes,
                          uint64_t highest_round, const std::string& folder) {
  Forecast out;
  out.round_tensors = round_tensors;
  out.round_bytes = round_bytes;
  out.rounds_requested = count_rounds(options.rounds, INT64_MAX);
  out.rounds_reached = round_tensors == 0 ? 0 : count_rounds(options.rounds, highest_round);
  out.tensors = product(round_tensors, out.rounds_reached);
  out.bytes = product(round_bytes, out.rounds_reached);
  out.free_bytes = launch::examine_disk(folder).free_bytes;
  if (round_tensors == 0) return out;
  const uint64_t average = round_bytes / round_tensors;
  const uint64_t blocks = average / kBlockBytes + 1;
  out.fits = product(out.tensors, product(blocks, kBlockBytes)) <= out.free_bytes;
  const auto seconds = time_to_write(folder, average);
  if (!seconds) return fail(seconds.error());
  out.seconds = *seconds * static_cast<double>(out.tensors);
  return out;
}

}  // namespace ait::dump
