// The fields of a plan as bytes, in their order: docs/formats/plan.md.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compare/block_codec.h"
#include "compare/plan.h"

namespace ait::compare {

struct PlannedPair {
  uint64_t number = 0;
  uint64_t bytes = 0;
  match::Pair pair;
};

// What is known of a block without reading it.
struct BlockFacts {
  uint32_t node = 0;  // an index into PlanFacts::nodes, or their number: of none
  uint64_t weight = 0;
  uint64_t first = 0;  // the number of its first pair
};

inline constexpr size_t kMaxChosenRows = size_t{1} << 28;
inline constexpr size_t kMaxListed = 65536;
inline constexpr size_t kMaxFactsTextBytes = size_t{64} << 20;
inline constexpr size_t kMaxTokens = size_t{1} << 22;
inline constexpr size_t kMaxBlocks = size_t{1} << 32;

// Ascending numbers, mostly.
template <typename Codec, typename T>
bool ascending_fields(Codec& c, T& numbers) {
  uint32_t before = 0;
  return list(c, numbers, kMaxChosenRows, [&](auto& number) {
    uint32_t more = number - before;
    if (!field(c, more)) return false;
    if constexpr (Codec::kReads) number = before + more;
    before = number;
    return true;
  });
}

template <typename Codec, typename T>
bool choice_fields(Codec& c, T& rows) {
  if (!field(c, rows.count) || !ascending_fields(c, rows.rows) || !ascending_fields(c, rows.last))
    return false;
  const auto is_inside = [&](uint32_t row) { return row < rows.count; };
  return !Codec::kReads ||
         (std::ranges::all_of(rows.rows, is_inside) && std::ranges::all_of(rows.last, is_inside));
}

// Eight to a whole number; never more than were read.
template <typename Codec, typename T>
bool bit_fields(Codec& c, T& bits) {
  uint64_t count = bits.size();
  if (!field(c, count) || count > kMaxChosenRows) return false;
  for (size_t at = 0; at < count; at += 8) {
    uint8_t eight = 0;
    const size_t here = std::min<size_t>(8, count - at);
    if constexpr (!Codec::kReads)
      for (size_t i = 0; i < here; ++i) eight |= static_cast<uint8_t>(bits[at + i] << i);
    if (!field(c, eight)) return false;
    if constexpr (Codec::kReads)
      for (size_t i = 0; i < here; ++i) bits.push_back(((eight >> i) & 1) != 0);
  }
  return true;
}

// What many pairs share is stored where a block first has it: 0 for none, else the place among those of the
// block, from 1.
template <typename T>
class Shared {
 public:
  template <typename Codec, typename Pointer, typename Fields>
  bool fields(Codec& c, Pointer& shared, Fields fields) {
    uint64_t place = 0;
    if constexpr (!Codec::kReads)
      if (shared)
        place = 1 + static_cast<uint64_t>(std::find(known_.begin(), known_.end(), shared) -
                                          known_.begin());
    if (!field(c, place) || place > known_.size() + 1) return false;
    if (place == 0) return true;
    if constexpr (Codec::kReads) {
      if (place > known_.size()) {
        auto made = std::make_shared<T>();
        if (!fields(c, *made)) return false;
        known_.push_back(std::move(made));
      }
      shared = known_[place - 1];
    } else if (place > known_.size()) {
      known_.push_back(shared);
      return fields(c, std::as_const(*shared));
    }
    return true;
  }

 private:
  std::vector<std::shared_ptr<const T>> known_;
};

// The pairs of one block.
class PairCodec {
 public:
  template <typename Codec, typename T>
  bool fields(Codec& c, T& planned) {
    c.texts.start_row();
    auto& pair = planned.pair;
    const auto rows_of = [](Codec& codec, auto& rows) { return choice_fields(codec, rows); };
    const auto side = [&](auto& each) {
      return records_fields(c, each.records) && transform_fields(c, each.transform) &&
             rows_.fields(c, each.rows, rows_of) && field(c, each.dequantise) &&
             (!each.dequantise || each.records.size() == 2 || each.records.size() == 3);
    };
    return field(c, planned.number) && field(c, planned.bytes) && field(c, pair.token) &&
           choice(c, pair.phase, match::Phase::kDecode) && subject_fields(c, pair.subject) &&
           side(pair.golden) && side(pair.actual) &&
           padding_.fields(c, pair.padding,
                           [](Codec& codec, auto& bits) { return bit_fields(codec, bits); }) &&
           choice(c, pair.fit, match::Fit::kLastRows) &&
           choice(c, pair.certainty, match::Certainty::kLikely) && field(c, pair.why) &&
           field(c, pair.alone) && field(c, pair.unread) && origin_fields(c, pair.origin) &&
           (!Codec::kReads || are_before(pair.origin.sources, planned.number));
  }

 private:
  Shared<match::RowChoice> rows_;
  Shared<std::vector<bool>> padding_;
};

template <typename Codec, typename T>
bool texts_fields(Codec& c, T& texts) {
  return list(c, texts, kMaxListed, [&](auto& text) {
    c.texts.start_item();
    return field(c, text);
  });
}

template <typename Codec, typename T>
bool completeness_fields(Codec& c, T& completeness) {
  return optional(c, completeness.complete, [&](auto& complete) { return field(c, complete); }) &&
         texts_fields(c, completeness.doubts);
}

template <typename Codec, typename T>
bool coverage_fields(Codec& c, T& coverage) {
  // A map has no places to read into.
  std::vector<std::pair<std::string, size_t>> alone(coverage.alone.begin(), coverage.alone.end());
  const bool whole = field(c, coverage.operations) && field(c, coverage.paired) &&
                     field(c, coverage.copies) && list(c, alone, kMaxListed, [&](auto& each) {
                       c.texts.start_item();
                       return field(c, each.first) && field(c, each.second);
                     });
  if constexpr (Codec::kReads) coverage.alone.insert(alone.begin(), alone.end());
  return whole;
}

template <typename Codec, typename T>
bool automatic_fields(Codec& c, T& found) {
  return coverage_fields(c, found.golden) && coverage_fields(c, found.actual) &&
         field(c, found.golden_layers) && field(c, found.actual_layers) &&
         field(c, found.certain) && field(c, found.likely) && field(c, found.method) &&
         list(c, found.tokens, kMaxTokens,
              [&](auto& token) {
                c.texts.start_item();
                return field(c, token.token) && field(c, token.golden_round) &&
                       field(c, token.actual_round) && field(c, token.is_prefill) &&
                       field(c, token.phase_is_known);
              }) &&
         texts_fields(c, found.notes);
}

// An error has no parts that could be read into.
template <typename Codec, typename T>
bool problems_fields(Codec& c, T& problems) {
  struct Problem {
    ErrorCode code = ErrorCode::kUsage;
    std::string path;
    std::string message;
    uint64_t offset_bytes = Error::kNoOffset;
  };
  std::vector<Problem> parts;
  for (const Error& each : problems)
    parts.push_back({each.code(), each.path(), each.message(), each.offset_bytes()});
  const bool whole = list(c, parts, kMaxListed, [&](auto& each) {
    c.texts.start_item();
    return choice(c, each.code, ErrorCode::kInterrupted) && field(c, each.path) &&
           field(c, each.message) && field(c, each.offset_bytes);
  });
  if constexpr (Codec::kReads)
    for (Problem& each : parts)
      problems.push_back(Error(each.code, std::move(each.path), each.offset_bytes) << each.message);
  return whole;
}

template <typename Codec, typename T>
bool facts_fields(Codec& c, T& facts) {
  auto& list_facts = facts.list;
  auto& settings = facts.settings;
  c.texts.start_row(kMaxFactsTextBytes);
  return optional(c, list_facts.kind,
                  [&](auto& kind) { return choice(c, kind, capture::RunKind::kFiles); }) &&
         field(c, list_facts.what) && problems_fields(c, list_facts.problems) &&
         completeness_fields(c, list_facts.golden_completeness) &&
         completeness_fields(c, list_facts.actual_completeness) &&
         optional(c, list_facts.automatic,
                  [&](auto& found) { return automatic_fields(c, found); }) &&
         choice(c, settings.compat, MetricCompat::kAit) && field(c, settings.rows) &&
         field(c, settings.extended) && field(c, settings.statistics) &&
         field(c, settings.fail_on) && field(c, settings.version) &&
         field(c, facts.identity.pairs) && field(c, facts.identity.bytes) &&
         field(c, facts.identity.checksum) && texts_fields(c, facts.nodes) &&
         optional(c, facts.only,
                  [&](auto& only) { return field(c, only.part) && field(c, only.parts); });
}

template <typename Codec, typename T>
bool blocks_fields(Codec& c, T& blocks) {
  return list(c, blocks, kMaxBlocks, [&](auto& block) {
    return field(c, block.node) && field(c, block.weight) && field(c, block.first);
  });
}

}  // namespace ait::compare
