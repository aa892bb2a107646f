#include "match/by_metadata.h"

namespace ait::match {

std::vector<Pair> pair_by_metadata(const capture::ManualMapping& mapping) {
  std::vector<Pair> pairs;
  pairs.reserve(mapping.pairs.size());
  for (const capture::MappedPair& entry : mapping.pairs) {
    Pair pair;
    pair.token_id = entry.token_id;
    pair.data_id = entry.data_id;
    pair.golden.path = entry.golden_path;
    pair.golden.operation = entry.data_id;
    pair.golden.round = entry.token_id;
    pair.actual = pair.golden;
    pair.actual.path = entry.actual_path;
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace ait::match
