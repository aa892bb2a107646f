#include "dump/texts.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

namespace ait::dump {
namespace {

std::string formatted(std::time_t moment, const char* format) {
  std::tm local{};
  ::localtime_r(&moment, &local);
  std::array<char, 64> text;
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}

}  // namespace

std::string iso_text(std::time_t moment) {
  std::string text = formatted(moment, "%Y-%m-%dT%H:%M:%S%z");
  if (text.size() > 2) text.insert(text.size() - 2, ":");  // +0800 to +08:00
  return text;
}

std::string stamp_text(std::time_t moment) { return formatted(moment, "%Y%m%d_%H%M%S"); }

std::string end_text(const launch::ChildEnd& end) {
  if (end.signal == 0) return fmt::format("ended with status {}", end.exit_status);
  return fmt::format("was killed by signal {} ({})", end.signal, ::strsignal(end.signal));
}

std::string bytes_text(uint64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"bytes", "KiB", "MiB", "GiB",
                                                        "TiB",   "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string count_text(uint64_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("s") ? "es" : "s");
}

}  // namespace ait::dump
