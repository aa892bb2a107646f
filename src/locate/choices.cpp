#include "locate/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "compare/engine.h"
#include "metrics/elements.h"

namespace ait::locate {
namespace {

// Rows before and after the one at hand among which the scores are looked for: what the same
// operation puts out.
constexpr size_t kNear = 4;

// A choice between candidates that are farther apart than this many times what the scores of the row
// are off by is not rounding's.
constexpr double kFarApart = 4;

constexpr size_t kMostElements = size_t{1} << 24;

struct Matrix {
  std::vector<double> golden;
  std::vector<double> actual;
  size_t rows = 0;
  size_t columns = 0;
};

std::optional<Matrix> matrix_of(const match::Pair& pair) {
  const auto tensors = compare::load_pair(pair);
  if (!tensors) return std::nullopt;
  const auto& [golden, actual] = *tensors;
  const size_t count = golden.elements();
  const auto is_complex = [](const Tensor& tensor) {
    return info(tensor.dtype()).kind == DTypeKind::kComplex;
  };
  if (is_complex(golden) || is_complex(actual)) return std::nullopt;
  if (count == 0 || count != actual.elements() || count > kMostElements) return std::nullopt;
  Matrix out;
  out.columns = golden.shape().empty() ? 1 : static_cast<size_t>(golden.shape().back());
  out.rows = count / out.columns;
  metrics::read_elements(golden.view(), 0, count, out.golden);
  metrics::read_elements(actual.view(), 0, count, out.actual);
  return out;
}

// Whether golden chose the best of its scores, in all rows but a few ties.
bool explains_golden(const Matrix& scores, const Matrix& choices) {
  size_t explained = 0;
  for (size_t row = 0; row < choices.rows; ++row) {
    const double* const score = &scores.golden[row * scores.columns];
    std::vector<double> best(score, score + scores.columns);
    const auto last = best.begin() + static_cast<ptrdiff_t>(choices.columns - 1);
    std::nth_element(best.begin(), last, best.end(), std::greater<>());
    const double least = *last;
    const double* const index = &choices.golden[row * choices.columns];
    explained += std::all_of(index, index + choices.columns, [&](double each) {
      return each >= 0 && score[static_cast<size_t>(each)] >= least;
    });
  }
  return explained * 10 >= choices.rows * 9;
}

// What chose: scores of all candidates, a row for each row of choices.
std::optional<Matrix> scores_of(const Finding& finding, const Matrix& choices,
                                const PairOf& pair_of) {
  const double largest = std::max(*std::max_element(choices.golden.begin(), choices.golden.end()),
                                  *std::max_element(choices.actual.begin(), choices.actual.end()));
  std::vector<size_t> candidates;
  for (size_t near = 1; near <= kNear; ++near) {
    if (finding.number >= near) candidates.push_back(finding.number - near);
    candidates.push_back(finding.number + near);
  }
  candidates.insert(candidates.end(), finding.sources.begin(), finding.sources.end());
  for (const size_t number : candidates) {
    const auto pair = pair_of(number);
    if (!pair || !pair->complete() || pair->token != finding.row.token) continue;
    const bool is_source =
        std::find(finding.sources.begin(), finding.sources.end(), number) != finding.sources.end();
    if (!is_source && pair->subject.name != finding.row.subject.name) continue;
    auto scores = matrix_of(*pair);
    if (scores && scores->rows == choices.rows && static_cast<double>(scores->columns) > largest &&
        scores->columns > choices.columns && explains_golden(*scores, choices))
      return scores;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unexplained_choice(const Finding& finding, const PairOf& pair_of) {
  const auto pair = pair_of(finding.number);
  if (!pair) return std::nullopt;
  const auto choices = matrix_of(*pair);
  if (!choices) return std::nullopt;
  const auto scores = scores_of(finding, *choices, pair_of);
  if (!scores) return std::nullopt;
  for (size_t row = 0; row < choices->rows; ++row) {
    const auto chosen = [&](const std::vector<double>& of) {
      std::vector<size_t> out;
      for (size_t i = 0; i < choices->columns; ++i)
        if (const double index = of[row * choices->columns + i]; index >= 0)
          out.push_back(static_cast<size_t>(index));
      std::sort(out.begin(), out.end());
      return out;
    };
    std::vector<size_t> only_golden, only_actual;
    const std::vector<size_t> golden = chosen(choices->golden);
    const std::vector<size_t> actual = chosen(choices->actual);
    std::set_difference(golden.begin(), golden.end(), actual.begin(), actual.end(),
                        std::back_inserter(only_golden));
    std::set_difference(actual.begin(), actual.end(), golden.begin(), golden.end(),
                        std::back_inserter(only_actual));
    if (only_golden.empty() || only_actual.empty()) continue;  // the same in another order
    const double* const g = &scores->golden[row * scores->columns];
    const double* const m = &scores->actual[row * scores->columns];
    double off = 0;
    for (size_t i = 0; i < scores->columns; ++i)
      if (std::isfinite(g[i]) && std::isfinite(m[i])) off = std::max(off, std::fabs(g[i] - m[i]));
    for (const size_t wanted : only_golden)
      for (const size_t taken : only_actual) {
        // By its own scores, mine should have chosen otherwise by this much.
        const double apart = std::min(g[wanted] - g[taken], m[wanted] - m[taken]);
        if (!(apart > kFarApart * off) || !(apart > 0)) continue;
        return fmt::format(
            "row {} chooses {} in place of {}, although the scores of the two are {} apart and "
            "both runs' scores differ by {} at most.",
            row, taken, wanted, number_text(apart), number_text(off));
      }
  }
  return std::nullopt;
}

}  // namespace ait::locate
