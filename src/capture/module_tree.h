// The modules of a torch model and when each of them was called: model_tree.json.
//
//     {"name": "root.drop", "type": "Dropout", "order": 2, "calls": [2, 7], "children": […]}
//
// "order" says when a module was first called; older tools do not write it, and then the order is
// that of registration. "calls" says it of every call, counted over all modules, where some module
// was called again in the round.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"

namespace ait::capture {

// "root.a.b#2" as {"root.a.b", 2}
std::pair<std::string, uint32_t> module_and_call(std::string_view folder);

// "root.a" of "root.a.b" and of "root.a.b#2"; empty for "root".
std::string module_around(std::string_view name);

struct ModuleNode {
  std::string name;
  std::string type;
  std::vector<uint64_t> starts;  // of its calls; empty where it has none, or nobody says
  uint64_t first = 0;            // when it, or the first thing in it, was called
};

// Parents first. Fails where the file cannot be read or holds no tree.
Result<std::vector<ModuleNode>> read_module_tree(const std::string& path);

// Of each module, which of its calls in a round have files.
using RecordedCalls = std::map<std::string, std::set<uint32_t>>;

// The operations of a torch dump: one for each call of a module, "root.drop" and "root.drop#1".
// Lists of modules, which nobody calls, are there once for each call of what they belong to.
class ModuleCalls {
 public:
  ModuleCalls(const std::vector<ModuleNode>& nodes, const RecordedCalls& recorded);

  // Without parents.
  std::vector<Operation> operations() const;

  // The call in which a call was made; empty where that is not known.
  std::string parent_of(const std::string& name) const;

  // Whether a call came before another one.
  bool less(const std::string& a, const std::string& b) const;

 private:
  struct Call {
    uint64_t start;
    size_t node;
    uint32_t number;
    std::string parent;
  };
  // Of a module: when its calls began, as far as that is known, and their numbers.
  struct Calls {
    std::vector<uint64_t> starts;
    std::vector<uint32_t> numbers;
  };
  const Call* find(const std::string& name) const;
  std::string parent_call(size_t node, size_t place) const;

  const std::vector<ModuleNode>& nodes_;
  std::map<std::string, size_t> by_name_;
  std::vector<Calls> calls_of_;  // [node]
  std::map<std::string, Call> calls_;
};

}  // namespace ait::capture
