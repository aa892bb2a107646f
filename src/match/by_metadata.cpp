#include "match/by_metadata.h"

namespace ait::match {

std::vector<Pair> pair_by_metadata(const capture::ManualMapping& mapping) {
  std::vector<Pair> pairs;
  pairs.reserve(mapping.pairs.size());
  for (const capture::MappedPair& entry : mapping.pairs) {
    Pair pair;
    pair.token = entry.token_id;
    pair.subject.name = entry.data_id;
    capture::TensorRecord record;
    record.operation = entry.data_id;
    record.round = entry.token_id;
    record.path = entry.golden_path;
    pair.golden = record;
    record.path = entry.actual_path;
    pair.actual = std::move(record);
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace ait::match
