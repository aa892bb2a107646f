// Points in time as texts, in local time.
#pragma once

#include <ctime>
#include <string>

namespace ait::cli {

std::string iso_text(std::time_t moment);    // "2025-01-02T03:04:05+08:00"
std::string stamp_text(std::time_t moment);  // "20250102_030405"

}  // namespace ait::cli
