#include "match/value_classes.h"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace ait::match {
namespace {

// Keeps hashes of names apart from numbers of values.
constexpr uint64_t kNamed = uint64_t{1} << 63;

// Stands for what a value holds where no data tell it. Such a value is like no other, unless a
// topology says that two of them are the same tensor.
uint64_t key_without_data(const SegmentSide& side, uint32_t value) {
  const std::string name = side.topology_name_of(side.values[value]);
  return name.empty() ? value + 1 : std::hash<std::string>()(name) | kNamed;
}

}  // namespace

ValueClasses classes_of(const SegmentSide& side, std::span<const Evidence> all,
                        std::vector<Evidence::ValueFacts> Evidence::* facts) {
  ValueClasses out;
  std::map<std::vector<uint64_t>, uint32_t> known;
  for (uint32_t value = 0; value < side.values.size(); ++value) {
    std::vector<uint64_t> key;
    bool has_data = false;
    for (const Evidence& evidence : all) {
      key.push_back((evidence.*facts)[value].content);
      has_data |= key.back() != 0;
    }
    if (!has_data) key.push_back(key_without_data(side, value));
    const auto [found, is_new] =
        known.try_emplace(std::move(key), static_cast<uint32_t>(out.members.size()));
    if (is_new) {
      out.members.emplace_back();
      out.has_data.push_back(has_data);
    }
    out.members[found->second].push_back(value);
    out.of.push_back(found->second);
  }
  return out;
}

uint32_t representative_of(const SegmentSide& side, const std::vector<uint32_t>& members) {
  for (const uint32_t value : members)
    if (side.values[value].is_output() && side.values[value].is_leaf) return value;
  return members.front();
}

uint32_t shown_member_of(const SegmentSide& side, const std::vector<uint32_t>& members) {
  const auto rank = [&](uint32_t value) {
    return std::tuple(!side.values[value].is_output(), !side.values[value].is_leaf);
  };
  uint32_t best = members.front();
  for (const uint32_t value : members) {
    // Of operations that lie in one another the last is the innermost.
    const bool is_container_output = side.values[value].is_output() && !side.values[value].is_leaf;
    if (rank(value) < rank(best) || (rank(value) == rank(best) && is_container_output))
      best = value;
  }
  return best;
}

}  // namespace ait::match
