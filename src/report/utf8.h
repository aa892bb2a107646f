// Text of outside origin (tensor names, paths) made fit for reports and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ait::report {

// Columns that a terminal gives the text: 2 for East Asian wide characters, 0 for combining marks.
// A byte that is not UTF-8 counts 1.
size_t display_width(std::string_view text);

// The same text as valid UTF-8: bytes that are not become \xNN. Readers of csv and JSON refuse
// anything else.
std::string valid_utf8(std::string_view text);

// valid_utf8, with control characters, terminal escapes and direction marks as \xNN too.
std::string visible(std::string_view text);

}  // namespace ait::report
