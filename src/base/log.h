// Messages to the person at the terminal: stderr only, one line each, from cli and dump and from no
// library below them.
//
//   log_info(fmt::format("{} pairs to compare", n));
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ait {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// Accepts the old tools' spellings: debug, info, warning, warn, error, fatal, critical. The last
// two count as error.
std::optional<LogLevel> parse_log_level(std::string_view name);
void set_log_level(LogLevel level);

void log(LogLevel level, std::string_view message);
inline void log_debug(std::string_view message) { log(LogLevel::kDebug, message); }
inline void log_info(std::string_view message) { log(LogLevel::kInfo, message); }
inline void log_warning(std::string_view message) { log(LogLevel::kWarning, message); }
inline void log_error(std::string_view message) { log(LogLevel::kError, message); }

// Whether a stream may carry colour and progress: a terminal, and NO_COLOR not set.
bool stdout_is_colourful();
bool stderr_is_colourful();
bool stderr_is_terminal();

}  // namespace ait
