// Why an operation is compared with what it is compared with (`ait llm compare --why`): the decision,
// and what was weighed for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "match/pair_paths.h"
#include "report/json.h"

namespace ait::summary {

// What became of one operation of either run.
struct Why {
  std::string operation;
  std::vector<match::Pair> pairs;  // those that it is in, of the first token that has it
  std::vector<std::vector<std::string>> sources;  // of each pair, the rows it is computed from
};

// Nothing where no row is about such an operation.
std::optional<Why> find_why(const match::PairList& list, const std::string& operation);

// Every operation that rows are about, for who misspelt one.
std::vector<std::string> operations_of(const match::PairList& list);

std::string why_text(const match::PairList& list, const Why& why, bool coloured);
report::JsonObject why_json(const match::PairList& list, const Why& why);

}  // namespace ait::summary
