#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

namespace ait {
namespace {

std::atomic<LogLevel> threshold{LogLevel::kInfo};

bool is_colourful(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return ::isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning" || name == "warn") return LogLevel::kWarning;
  if (name == "error" || name == "fatal" || name == "critical") return LogLevel::kError;
  return std::nullopt;
}

void set_log_level(LogLevel level) { threshold = level; }

void log(LogLevel level, std::string_view message) {
  static constexpr std::array<std::string_view, 4> kNames = {"debug", "", "warning", "error"};
  static constexpr std::array<std::string_view, 4> kColours = {"\033[2m", "", "\033[33m",
                                                               "\033[31m"};
  if (level < threshold.load()) return;
  const auto index = static_cast<size_t>(level);
  const bool coloured = stderr_is_colourful() && !kColours[index].empty();
  std::string line = "ait: ";
  if (!kNames[index].empty()) {
    if (coloured) line += kColours[index];
    line += kNames[index];
    if (coloured) line += "\033[0m";
    line += ": ";
  }
  line += message;
  line += '\n';
  // One write per line, so that lines of several processes do not mix.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

bool stdout_is_colourful() { return is_colourful(STDOUT_FILENO); }
bool stderr_is_colourful() { return is_colourful(STDERR_FILENO); }
bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) == 1; }

}  // namespace ait
