#include "cli/moment.h"

#include <array>

namespace ait::cli {
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

}  // namespace ait::cli
