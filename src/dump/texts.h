// The facts of a recording as texts: for people, and for names of files.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

#include "launch/child.h"
#include "report/utf8.h"

namespace ait::dump {

// Points in time, in local time.
std::string iso_text(std::time_t moment);    // "2025-01-02T03:04:05+08:00"
std::string stamp_text(std::time_t moment);  // "20250102_030405"

// "ended with status 1", "was killed by signal 9 (Killed)".
std::string end_text(const launch::ChildEnd& end);

using report::shell_word;

// "1.5 MiB"
std::string bytes_text(uint64_t bytes);

// "1 tensor", "2 tensors"
std::string count_text(uint64_t count, const std::string& what);

}  // namespace ait::dump
