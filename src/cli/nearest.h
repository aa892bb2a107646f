// The word that somebody who misspelt it may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ait::cli {

// The candidate that takes the fewest letters to insert, leave out, replace or swap with their
// neighbour, or one that `word` begins; "" where none is near: nearest("--exc", {"--exec", "-o"}) is
// "--exec".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ait::cli
