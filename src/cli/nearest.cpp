#include "cli/nearest.h"

#include <algorithm>

namespace ait::cli {
namespace {

size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> steps(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        steps[i][j] = i + j;
        continue;
      }
      steps[i][j] = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1,
                              steps[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
    }
  return steps[a.size()][b.size()];
}

size_t letters(std::string_view word) {
  return word.size() - std::min(word.find_first_not_of('-'), word.size());
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestWord = 64;  // whatever is longer was not meant to be one of ours
  if (letters(word) < 2 || word.size() > kLongestWord) return "";
  std::string best;
  size_t fewest = letters(word) / 3 + 1;
  for (const std::string& candidate : candidates)
    if (const size_t steps = distance(word, candidate);
        letters(candidate) > 1 && (steps < fewest || (steps == fewest && best.empty()))) {
      best = candidate;
      fewest = steps;
    }
  if (!best.empty()) return best;
  const auto longer = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const std::string& each) { return each.starts_with(word); });
  return longer == candidates.end() ? "" : *longer;
}

}  // namespace ait::cli
