#include "match/by_name.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <unordered_map>

namespace ait::match {
namespace {

using capture::Capture;
using capture::TensorRecord;

constexpr size_t kNone = ~size_t{0};
constexpr size_t kSeveral = kNone - 1;

// A file's name without its extension; a tensor's name inside a file has none.
std::string stem(const TensorRecord& record) {
  if (!record.member.empty()) return record.operation;
  const std::filesystem::path path(record.operation);
  return (path.parent_path() / path.stem()).native();
}

// Which of the records not `taken` has each stem, or kSeveral.
std::unordered_map<std::string, size_t> by_stem(const Capture& capture,
                                                const std::vector<bool>& taken) {
  std::unordered_map<std::string, size_t> found;
  for (size_t i = 0; i < capture.records.size(); ++i) {
    if (taken[i]) continue;
    const auto [place, is_new] = found.try_emplace(stem(capture.records[i]), i);
    if (!is_new) place->second = kSeveral;
  }
  return found;
}

}  // namespace

std::vector<Pair> pair_by_name(const Capture& golden, const Capture& actual) {
  std::vector<size_t> partner(golden.records.size(), kNone);
  std::vector<bool> golden_taken(golden.records.size());
  std::vector<bool> actual_taken(actual.records.size());
  const auto take = [&](size_t g, size_t m) {
    partner[g] = m;
    golden_taken[g] = true;
    actual_taken[m] = true;
  };
  std::unordered_map<std::string_view, size_t> exact;
  for (size_t i = 0; i < actual.records.size(); ++i) exact.emplace(actual.records[i].operation, i);
  for (size_t i = 0; i < golden.records.size(); ++i)
    if (const auto found = exact.find(golden.records[i].operation); found != exact.end())
      take(i, found->second);

  const auto golden_stems = by_stem(golden, golden_taken);
  const auto actual_stems = by_stem(actual, actual_taken);
  for (const auto& [name, g] : golden_stems) {
    const auto found = actual_stems.find(name);
    if (g != kSeveral && found != actual_stems.end() && found->second != kSeveral)
      take(g, found->second);
  }

  std::vector<Pair> pairs;
  pairs.reserve(golden.records.size());
  for (size_t i = 0; i < golden.records.size(); ++i) {
    Pair pair;
    pair.golden = golden.records[i];
    if (partner[i] != kNone) pair.actual = actual.records[partner[i]];
    pairs.push_back(std::move(pair));
  }
  const auto name = [](const Pair& pair) -> const std::string& {
    return (pair.golden.present() ? pair.golden : pair.actual).records.front().operation;
  };
  std::vector<Pair> alone;
  for (size_t i = 0; i < actual.records.size(); ++i) {
    if (actual_taken[i]) continue;
    alone.emplace_back().actual = actual.records[i];
  }
  // Both are sorted by name already.
  std::vector<Pair> all;
  all.reserve(pairs.size() + alone.size());
  std::merge(std::make_move_iterator(pairs.begin()), std::make_move_iterator(pairs.end()),
             std::make_move_iterator(alone.begin()), std::make_move_iterator(alone.end()),
             std::back_inserter(all),
             [&](const Pair& a, const Pair& b) { return capture::natural_less(name(a), name(b)); });
  for (Pair& pair : all) {
    pair.subject.name = name(pair);
    pair.token = (pair.golden.present() ? pair.golden : pair.actual).records.front().round;
  }
  return all;
}

size_t add_scales(std::vector<Pair>& pairs) {
  std::unordered_map<std::string, size_t> mine_alone;  // by name
  for (size_t i = 0; i < pairs.size(); ++i)
    if (!pairs[i].golden.present()) mine_alone.emplace(pairs[i].subject.name, i);
  std::vector<bool> used(pairs.size());
  size_t found = 0;
  for (Pair& pair : pairs) {
    if (!pair.complete() || !pair.subject.name.ends_with("weight")) continue;
    const auto take = [&](std::string_view suffix) {
      const auto part = mine_alone.find(pair.subject.name + std::string(suffix));
      if (part == mine_alone.end()) return false;
      pair.actual.records.push_back(pairs[part->second].actual.records.front());
      used[part->second] = true;
      return true;
    };
    if (!take("_scale")) continue;
    take("_offset");
    pair.actual.dequantise = true;
    ++found;
  }
  size_t at = 0;
  std::erase_if(pairs, [&](const Pair&) { return used[at++]; });
  return found;
}

}  // namespace ait::match
