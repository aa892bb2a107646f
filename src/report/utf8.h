// Text of outside origin (tensor names, paths) made fit for reports and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ait::report {

// One character of a text.
struct Character {
  char32_t code = 0;
  size_t bytes = 1;  // that it takes
  bool valid = false;
};

// The character at the start of `text`, which is not empty. Overlong forms, surrogates and values
// beyond U+10FFFF are not valid and take one byte.
Character first_character(std::string_view text);

// Whether a terminal would obey a character rather than show it, or show others in another order.
bool is_unsafe(char32_t code);

// Columns that a terminal gives the text: 2 for East Asian wide characters, 0 for combining marks.
// A byte that is not UTF-8 counts 1.
size_t display_width(std::string_view text);

// The same text as valid UTF-8: bytes that are not become \xNN. Readers of csv and JSON refuse
// anything else.
std::string valid_utf8(std::string_view text);

// valid_utf8, with what is unsafe as \xNN, too, but for tabs and line ends: for files that a person
// may print.
std::string safe_text(std::string_view text);

// valid_utf8, with control characters, terminal escapes and direction marks as \xNN too.
std::string visible(std::string_view text);

// A word as it can be typed in a shell.
std::string shell_word(std::string_view text);

}  // namespace ait::report
