// What two runs were fed in a step: the same tokens, at the same places of their sequences?
//
//   Feeding feeding(golden, actual, tokens_of);
//   if (feeding.at(step).tokens == Fed::kOther) …       // their numbers have nothing in common
//
// The ids of tokens are what the model and its embedding were given. Where one of the runs has not
// recorded its inputs, what flows into the first layer tells it: the row of a token is always the
// same. Whether rounds correspond is asked here first: data may be wrong just because of a fault.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "match/sample.h"
#include "match/tokens.h"

namespace ait::match {

enum class Fed : uint8_t { kUnknown, kSame, kOther };

// What is known of a step.
struct FedTokens {
  Fed tokens = Fed::kUnknown;
  Fed positions = Fed::kUnknown;  // in their sequences
  bool by_ids = false;            // both runs have recorded ids
  bool some_rows_same = false;    // where they have not: some rows of the two are
  std::string first_other;        // "token 3 of 7: golden 17, my side 41"; of ids alone
};

class Feeding {
 public:
  // How many tokens the two sides worked on in a step.
  using TokensOf = std::function<std::pair<Tokens, Tokens>(const Step& step)>;

  Feeding(const RunSide& golden, const RunSide& actual, TokensOf tokens_of)
      : golden_(golden), actual_(actual), tokens_of_(std::move(tokens_of)) {}

  FedTokens at(const Step& step);

  using Numbers = std::optional<std::vector<int64_t>>;
  // Where tokens stand in their sequences, as it was recorded.
  Numbers positions_of(bool is_golden, const SideStep& step) {
    return integers_of(is_golden, step, slots_of(is_golden, step.program).positions);
  }

 private:
  // Slots that may hold what is looked for, the best ones first.
  struct Slots {
    std::vector<uint32_t> ids;
    std::vector<uint32_t> positions;
    std::vector<uint32_t> stream;          // what flows into the first layer
    std::optional<uint32_t> layer_output;  // which is as wide
  };
  const Slots& slots_of(bool is_golden, size_t program);
  Numbers integers_of(bool is_golden, const SideStep& step,
                      const std::vector<uint32_t>& slots) const;
  std::optional<Sample> stream_of(bool is_golden, const SideStep& step, const Tokens& tokens);
  void compare_streams(const Step& step, FedTokens& out);
  const RunSide& side(bool is_golden) const { return is_golden ? golden_ : actual_; }

  const RunSide& golden_;
  const RunSide& actual_;
  TokensOf tokens_of_;
  std::map<std::pair<bool, size_t>, Slots> slots_;
};

// Marks the steps in which the runs were fed different tokens, and those that follow in the same
// sequence, as not comparable, and says so in the notes. Where a person mapped tokens to folders it
// is said and nothing else.
void mark_other_tokens(Feeding& feeding, bool is_mapped, Alignment& alignment);

}  // namespace ait::match
