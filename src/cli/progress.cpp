#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "base/log.h"

namespace ait::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kDelay = 1s;
constexpr auto kInterval = 100ms;
constexpr size_t kBarWidth = 30;

void to_stderr(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string duration_text(double seconds) {
  const auto whole = std::lround(seconds);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 6000) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string progress_line(size_t done, size_t total, uint64_t bytes, double seconds) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const auto filled = static_cast<size_t>(share * static_cast<double>(kBarWidth));
  std::string line = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '-') + "]";
  line += fmt::format(" {:3.0f}%  {}/{} rows", share * 100, done, total);
  if (seconds > 0) line += fmt::format("  {:.1f} GB/s", static_cast<double>(bytes) / seconds / 1e9);
  if (done > 0 && done < total) line += "  " + duration_text(seconds * (1 / share - 1)) + " left";
  return line;
}

Progress::Progress(size_t total)
    : enabled_(stderr_is_terminal()), total_(total), start_(Clock::now()), next_(start_ + kDelay) {}

Progress::~Progress() { clear(); }

void Progress::advance(size_t done, uint64_t bytes) {
  bytes_ += bytes;
  if (!enabled_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  to_stderr("\r" + progress_line(done, total_, bytes_, seconds) + "\033[K");
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) to_stderr("\r\033[K");
  drawn_ = false;
}

}  // namespace ait::cli
