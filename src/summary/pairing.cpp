#include "summary/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/table.h"
#include "report/utf8.h"

namespace ait::summary {
namespace {

using match::AlignedToken;
using match::AutomaticPairs;
using match::Coverage;

constexpr size_t kShownReasons = 4;
constexpr size_t kShownTokens = 8;

std::string_view phase_of(const AlignedToken& token) {
  if (!token.phase_is_known) return "";
  return token.is_prefill ? "prefill" : "decode";
}

std::string side_text(std::string_view whose, const Coverage& side) {
  const size_t alone = side.operations - side.paired - side.copies;
  std::string out =
      fmt::format("{}: {} of {} operations paired", whose, side.paired, side.operations);
  if (side.copies > 0)
    out += fmt::format(", {} {} the same data as one of these", side.copies,
                       side.copies == 1 ? "holds" : "hold");
  if (alone > 0) out += fmt::format(", {} {} no partner", alone, alone == 1 ? "has" : "have");
  out += "\n";
  std::vector<std::pair<size_t, std::string>> reasons;
  reasons.reserve(side.alone.size());
  for (const auto& [why, count] : side.alone) reasons.emplace_back(count, why);
  std::sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (size_t i = 0; i < reasons.size() && i < kShownReasons; ++i)
    out += fmt::format("  {} × {}\n", reasons[i].first, report::visible(reasons[i].second));
  if (reasons.size() > kShownReasons)
    out += fmt::format("  … and {} more reasons, see the report\n", reasons.size() - kShownReasons);
  return out;
}

std::string token_table(const std::vector<AlignedToken>& tokens, bool coloured) {
  report::Table table({{"token", report::Align::kRight}, {"golden folder"}, {"my folder"}, {""}});
  const auto add = [&](const AlignedToken& token) {
    table.add({token.token, token.golden_round, token.actual_round, std::string(phase_of(token))});
  };
  const bool all = tokens.size() <= kShownTokens;
  for (size_t i = 0; i < (all ? tokens.size() : kShownTokens - 1); ++i) add(tokens[i]);
  if (!all) {
    table.add({"…", "…", "…", ""});
    add(tokens.back());
  }
  return table.text(coloured);
}

report::JsonObject side_json(const Coverage& side) {
  report::JsonObject reasons;
  for (const auto& [why, count] : side.alone) reasons.set(why, uint64_t{count});
  report::JsonObject out;
  out.set("operations", uint64_t{side.operations})
      .set("paired", uint64_t{side.paired})
      .set("same_as_paired", uint64_t{side.copies})
      .set("unpaired", std::move(reasons));
  return out;
}

// The first doubt stands for all; JSON has them.
std::string doubts_text(std::string_view whose, const capture::Completeness& side) {
  if (side.doubts.empty()) return {};
  const std::string more =
      side.doubts.size() == 1 ? "" : fmt::format(" (and {} more)", side.doubts.size() - 1);
  return fmt::format("{} may lack tensors: {}{}\n", whose, report::visible(side.doubts.front()),
                     more);
}

report::JsonObject doubts_json(const capture::Completeness& side) {
  report::JsonArray doubts;
  for (const std::string& doubt : side.doubts) doubts.emplace_back(doubt);
  report::JsonObject out;
  out.set("complete", side.complete ? report::Cell(*side.complete) : report::Cell())
      .set("doubts", std::move(doubts));
  return out;
}

}  // namespace

std::string completeness_text(const match::PairList& list) {
  return doubts_text("golden", list.golden_completeness) +
         doubts_text("my side", list.actual_completeness);
}

report::JsonObject completeness_json(const match::PairList& list) {
  report::JsonObject out;
  out.set("golden", doubts_json(list.golden_completeness))
      .set("my", doubts_json(list.actual_completeness));
  return out;
}

std::string coverage_text(const AutomaticPairs& found, bool coloured) {
  std::string out = side_text("my side", found.actual) + side_text("golden", found.golden);
  out += fmt::format(
      "of the paired operations of my side {} are certain, {} likely; they were paired {}\n",
      found.certain, found.likely, found.method);
  if (found.golden_layers + found.actual_layers > 0)
    out += fmt::format("layers: {} in golden, {} in my side\n", found.golden_layers,
                       found.actual_layers);
  for (const std::string& note : found.notes) out += "note: " + report::visible(note) + "\n";
  return out + "\n" + token_table(found.tokens, coloured) + "\n";
}

report::JsonObject coverage_json(const AutomaticPairs& found) {
  report::JsonArray tokens;
  for (const AlignedToken& token : found.tokens) {
    report::JsonObject each;
    each.set("token", token.token)
        .set("golden_folder", token.golden_round)
        .set("my_folder", token.actual_round)
        .set("phase", std::string(phase_of(token)));
    tokens.emplace_back(std::move(each));
  }
  report::JsonArray notes;
  for (const std::string& note : found.notes) notes.emplace_back(note);
  report::JsonObject out;
  out.set("my", side_json(found.actual))
      .set("golden", side_json(found.golden))
      .set("certain", uint64_t{found.certain})
      .set("likely", uint64_t{found.likely})
      .set("method", found.method)
      .set("golden_layers", uint64_t{found.golden_layers})
      .set("my_layers", uint64_t{found.actual_layers})
      .set("tokens", std::move(tokens))
      .set("notes", std::move(notes));
  return out;
}

}  // namespace ait::summary
