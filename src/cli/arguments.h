// The seeds' options that no parser of ours knows: several letters after one dash, and short twins
// of long names. They are rewritten before anything else looks at the command line.
//
//   rewrite_arguments({"llm", "compare", "-gp", "a.npy", "-mp=b.npy"})
//       -> {"llm", "compare", "--golden-path", "a.npy", "--my-path=b.npy"}
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ait::cli {

// Without the program's name. What follows "--" stays as it is.
std::vector<std::string> rewrite_arguments(const std::vector<std::string>& arguments);

// The seeds' spelling of a long option, for the help: "-gp" for "--golden-path", or "".
std::string_view seed_spelling(std::string_view long_option);

}  // namespace ait::cli
