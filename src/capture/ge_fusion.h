// Which operations of a graph a dumped operation does the work of.
//
//   GraphNames names(graph);
//   const Fusion fusion = names.decompose("Add_2Cast_9ConcatV2", dumped);   // three of them
//
// GE names a fused operation by those that it fused, one name after the other without anything in
// between; nothing else tells what was fused. So the longest name that the rest of the text begins
// with is taken, again and again. A name that ends in a digit is not one where a digit follows:
// "Add_10" does not begin with "Add_1".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/ge_text.h"

namespace ait::capture {

struct Fusion {
  std::vector<uint32_t> parts;  // operations of the graph, in order
  bool is_whole = false;        // nothing of the name was left over
};

class GraphNames {
 public:
  explicit GraphNames(const graph::GeGraph& graph);

  // `dumped` are the names of all dumped operations: one that the graph does not know ends the
  // search, since whose part it is cannot be told.
  Fusion decompose(std::string_view name, const std::unordered_set<std::string>& dumped) const;

 private:
  // As they are, and as files are named after them.
  std::unordered_map<std::string, uint32_t> places_;
};

// With what GE does not allow in the name of a file replaced by '_': blanks, dots, slashes.
std::string as_file_name(std::string_view name);

}  // namespace ait::capture
