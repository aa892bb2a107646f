#include "match/pair.h"

namespace ait::match {

const char* word(Certainty certainty) {
  switch (certainty) {
    case Certainty::kCertain:
      return "certain";
    case Certainty::kLikely:
      return "likely";
  }
  return "";
}

std::string Transform::text() const {
  std::string out;
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (heads_first) add("heads after tokens");
  if (taken > 0) {
    std::string part =
        "columns " + std::to_string(first) + " to " + std::to_string(first + taken - 1);
    if (period > 0) part += " of every " + std::to_string(period);
    add(part);
  }
  if (join == Join::kColumns) add("shards side by side");
  if (join == Join::kSum) add("added up");
  return out;
}

}  // namespace ait::match
