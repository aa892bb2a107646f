#include "locate/causes.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "locate/cause_families.h"

namespace ait::locate {
namespace {

constexpr auto kFamilies = std::to_array<void (*)(const Evidence&, Candidates&)>({
    attention_causes,
    rotary_causes,
    norm_causes,
    activation_causes,
    arithmetic_causes,
    linear_causes,
    layout_causes,
    precision_causes,
    region_causes,
});

// Residual errors within this factor of the best, or within the noise, are equally good.
constexpr double kEquallyGood = 2;
constexpr size_t kMost = 4;

// Best first: what explains the fault before what only says where it is, equally good explanations
// by what they rest on.
void rank(Candidates& candidates, double noise) {
  double best = 0;
  bool is_first = true;
  for (const Candidate& candidate : candidates) {
    if (candidate.proof >= Proof::kGuess) continue;
    best =
        is_first ? candidate.cause.residual_error : std::min(best, candidate.cause.residual_error);
    is_first = false;
  }
  const double good = kEquallyGood * std::max(best, noise);
  const auto order = [&](const Candidate& candidate) {
    const bool is_good = candidate.proof >= Proof::kGuess || candidate.cause.residual_error <= good;
    // What is less good comes after all that is proven, and before what is guessed. Those that are
    // equally good stay in the order of their families.
    if (is_good) return std::pair(static_cast<int>(candidate.proof), 0.0);
    return std::pair(static_cast<int>(Proof::kFitted), candidate.cause.residual_error);
  };
  std::ranges::stable_sort(candidates, {}, order);
  // Beside an explanation nobody needs a guess.
  if (!is_first)
    std::erase_if(candidates, [](const Candidate& each) { return each.proof == Proof::kGuess; });
}

}  // namespace

bool type_has(const CauseCase& fault, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return !std::ranges::search(fault.type, word, same).empty();
}

std::vector<Cause> likely_causes(const CauseCase& fault) {
  const Evidence evidence(fault);
  if (!evidence.usable()) return {};
  Candidates candidates;
  for (const auto family : kFamilies) family(evidence, candidates);
  rank(candidates, evidence.noise());
  std::vector<Cause> out;
  for (Candidate& candidate : candidates) {
    const bool is_known = std::ranges::any_of(
        out, [&](const Cause& cause) { return cause.name == candidate.cause.name; });
    if (!is_known && out.size() < kMost) out.push_back(std::move(candidate.cause));
  }
  return out;
}

}  // namespace ait::locate
