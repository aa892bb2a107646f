// Sentences for a terminal: broken between words rather than where the line happens to end.
//
//   print(wrapped(text, stdout_columns()));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ait::report {

// Each line of the text in lines of at most so many columns, the second and later ones two columns
// farther in than the first. A word that is longer stays whole: a path is there to be copied. 0: as
// it is.
std::string wrapped(std::string_view text, size_t columns);

}  // namespace ait::report
