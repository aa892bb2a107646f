#include "graph/topology.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace ait::graph {
namespace {

void walk_below(const Node& node, std::vector<const Node*>& parents, const NodeVisitor& visit) {
  visit(node, parents);
  parents.push_back(&node);
  for (const Node& child : node.nodes) walk_below(child, parents, visit);
  parents.pop_back();
}

}  // namespace

std::vector<uint64_t> ids_of(const Node& node) {
  std::vector<uint64_t> ids;
  std::string_view rest = node.name;
  // A type that ends in a number itself ("Layer_7B_2") is told apart where the name starts with it.
  const size_t type_bytes = node.name.starts_with(node.type + "_") ? node.type.size() : 0;
  while (true) {
    const size_t underscore = rest.rfind('_');
    if (underscore == std::string_view::npos || underscore < type_bytes) break;
    const std::string_view digits = rest.substr(underscore + 1);
    uint64_t id = 0;
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    if (digits.empty() || bad != std::errc() || end != digits.data() + digits.size()) break;
    ids.push_back(id);
    rest = rest.substr(0, underscore);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

void walk(const Node& root, const NodeVisitor& visit) {
  std::vector<const Node*> parents;
  walk_below(root, parents, visit);
}

}  // namespace ait::graph
