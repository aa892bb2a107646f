#include "match/fused.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "match/layers.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::kNoOperation;
using capture::OpKind;
using capture::Recording;

// The cosine of two tensors that are alike is this many standard deviations, 1/sqrt(elements), above
// that of unrelated ones, and never less than the other.
constexpr double kDeviations = 6;
constexpr double kAlike = 0.3;

// Of modules with the same parts, so many are looked at.
constexpr size_t kLookedAt = 5;

// Of a part with the columns [first, …) of the wide tensor. What all rows have in common, a bias,
// would make everything alike.
double cosine(const Sample& part, const Sample& wide, size_t first) {
  double product = 0;
  double part_square = 0;
  double wide_square = 0;
  const size_t rows = std::min(part.rows.size(), wide.rows.size());
  for (size_t i = 0; i < part.columns; ++i) {
    double part_mean = 0;
    double wide_mean = 0;
    for (size_t row = 0; row < rows; ++row) {
      part_mean += part.rows[row][i] / static_cast<double>(rows);
      wide_mean += wide.rows[row][first + i] / static_cast<double>(rows);
    }
    for (size_t row = 0; row < rows; ++row) {
      const double x = part.rows[row][i] - part_mean;
      const double y = wide.rows[row][first + i] - wide_mean;
      product += x * y;
      part_square += x * x;
      wide_square += y * y;
    }
  }
  const double size = std::sqrt(part_square * wide_square);
  return std::isfinite(product) && std::isfinite(size) && size > 0 ? product / size : 0;
}

// The linear outputs among some slots that the children of a module have, in their order.
std::vector<uint32_t> linears_in(const Recording& recording, uint32_t parent,
                                 const std::set<uint32_t>& among) {
  std::vector<uint32_t> out;
  for (uint32_t i = parent + 1; i < recording.operations[parent].end;
       i = recording.operations[i].end)
    if (recording.operations[i].kind == OpKind::kLinear && is_leaf(recording, i))
      for (auto slot = among.lower_bound(recording.first_slot[i]);
           slot != among.end() && *slot < recording.first_slot[i + 1]; ++slot)
        if (recording.slots[*slot].direction == Direction::kOutput) out.push_back(*slot);
  return out;
}

// In one module.
struct Fused {
  std::vector<uint32_t> parts;
  uint32_t wide;
  bool golden_has_parts;
};

std::string last_word(const Recording& recording, uint32_t slot) {
  const std::string& name = recording.operations[recording.slots[slot].operation].name;
  return name.substr(name.rfind('.') + 1);
}

PlannedPair pair_of(const Fused& fused, size_t part, const Transform& columns, bool several) {
  PlannedPair pair;
  pair.golden = {fused.golden_has_parts ? fused.parts[part] : fused.wide};
  pair.actual = {fused.golden_has_parts ? fused.wide : fused.parts[part]};
  (fused.golden_has_parts ? pair.form.actual : pair.form.golden) = columns;
  if (several) pair.form.golden_ranks = pair.form.actual_ranks = RankUse::kEach;
  pair.certainty = Certainty::kLikely;
  pair.why = "a part of it is alike, and modules of the same name around both";
  return pair;
}

}  // namespace

std::optional<bool> stand_in_order(const std::vector<Sample>& parts, const Sample& wide) {
  const size_t columns =
      std::accumulate(parts.begin(), parts.end(), size_t{0},
                      [](size_t sum, const Sample& part) { return sum + part.columns; });
  if (columns != wide.columns || wide.rows.empty()) return std::nullopt;
  const auto rows = static_cast<double>(std::min(parts[0].rows.size(), wide.rows.size()));
  bool all_alike = true;
  for (const Sample& part : parts) {
    const double elements = static_cast<double>(part.columns) * std::max(rows - 1, 1.0);
    const double alike = std::max(kAlike, kDeviations / std::sqrt(elements));
    size_t first = 0;
    for (const Sample& place : parts) {
      if (place.columns == part.columns) {
        const bool is_alike = cosine(part, wide, first) >= alike;
        if (is_alike && &place != &part) return false;
        all_alike &= is_alike || &place != &part;
      }
      first += place.columns;
    }
  }
  return all_alike ? std::optional(true) : std::nullopt;
}

std::vector<PlannedPair> plan_fused(const Recording& golden, const Recording& actual,
                                    const PlaceMap& places, const std::set<uint32_t>& golden_rest,
                                    const std::set<uint32_t>& actual_rest, const ReadSlot& read,
                                    size_t rounds) {
  std::map<std::string, std::vector<Fused>> alike;  // modules with parts of the same names
  for (uint32_t a = 0; a < actual.operations.size(); ++a) {
    const uint32_t g = places.golden_of[a];
    if (g == kNoOperation) continue;
    const std::vector<uint32_t> goldens = linears_in(golden, g, golden_rest);
    const std::vector<uint32_t> actuals = linears_in(actual, a, actual_rest);
    if (std::min(goldens.size(), actuals.size()) != 1 || goldens.size() == actuals.size()) continue;
    const bool golden_has_parts = actuals.size() == 1;
    std::string key = golden_has_parts ? "golden" : "mine";
    for (const uint32_t slot : goldens) key += "/" + last_word(golden, slot);
    for (const uint32_t slot : actuals) key += "/" + last_word(actual, slot);
    alike[key].push_back(golden_has_parts ? Fused{goldens, actuals[0], true}
                                          : Fused{actuals, goldens[0], false});
  }
  std::vector<PlannedPair> out;
  for (const auto& [key, all] : alike) {
    size_t yes = 0;
    bool no = false;
    std::vector<size_t> widths;
    const size_t count = std::min(kLookedAt, all.size());
    for (size_t i = 0; i < count; ++i) {
      const Fused& fused = all[count == 1 ? 0 : i * (all.size() - 1) / (count - 1)];
      for (size_t round = 0; round < rounds; ++round) {
        const auto wide = read(!fused.golden_has_parts, fused.wide, round);
        std::vector<Sample> parts;
        for (const uint32_t slot : fused.parts)
          if (auto part = read(fused.golden_has_parts, slot, round)) parts.push_back(*part);
        if (!wide || parts.size() != fused.parts.size()) continue;
        const auto found = stand_in_order(parts, *wide);
        no |= found == false;
        if (found != true) continue;
        ++yes;
        widths.clear();
        for (const Sample& part : parts) widths.push_back(part.columns);
      }
    }
    if (yes == 0 || no) continue;
    Transform columns;
    columns.columns =
        static_cast<int64_t>(std::accumulate(widths.begin(), widths.end(), size_t{0}));
    for (size_t part = 0; part < widths.size(); ++part) {
      columns.taken = static_cast<int64_t>(widths[part]);
      for (const Fused& fused : all)
        out.push_back(pair_of(fused, part, columns, actual.ranks.size() > 1));
      columns.first += columns.taken;
    }
  }
  return out;
}

}  // namespace ait::match
