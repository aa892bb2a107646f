#include "capture/module_tree.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include "base/text_file.h"
#include "capture/listing.h"
#include "capture/torch_dump.h"

namespace ait::capture {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxTreeBytes = size_t{256} << 20;
// simdjson's own limit is 1024; modules do not nest like this.
constexpr size_t kMaxTreeDepth = 512;

struct Reader {
  std::vector<ModuleNode> nodes;
  std::set<std::string, std::less<>> names;

  // Returns when the node, or the first thing in it, was called.
  uint64_t add(const simdjson::dom::element& element, size_t depth) {
    std::string_view name;
    std::string_view type;
    uint64_t first = kNever;
    if (depth > kMaxTreeDepth || element["name"].get(name) != simdjson::SUCCESS) return kNever;
    if (std::string_view alias; element["alias_of"].get(alias) == simdjson::SUCCESS)
      return kNever;  // stands elsewhere
    if (element["type"].get(type) != simdjson::SUCCESS) type = {};
    ModuleNode node;
    node.name = name;
    node.type = type;
    simdjson::dom::array calls;
    if (element["calls"].get(calls) == simdjson::SUCCESS) {
      for (const simdjson::dom::element call : calls)
        if (uint64_t start = 0; call.get(start) == simdjson::SUCCESS) node.starts.push_back(start);
      std::sort(node.starts.begin(), node.starts.end());
    } else if (uint64_t order = 0; element["order"].get(order) == simdjson::SUCCESS) {
      node.starts.push_back(order);
    }
    if (!node.starts.empty()) first = node.starts.front();
    const size_t at = nodes.size();
    const bool is_new = names.insert(node.name).second;
    if (is_new) nodes.push_back(std::move(node));
    simdjson::dom::array children;
    if (element["children"].get(children) == simdjson::SUCCESS)
      for (const simdjson::dom::element child : children)
        first = std::min(first, add(child, depth + 1));
    if (is_new) nodes[at].first = first;
    return first;
  }
};

std::string call_name(const std::string& module, uint32_t number) {
  return number == 0 ? module : module + "#" + std::to_string(number);
}

}  // namespace

std::pair<std::string, uint32_t> module_and_call(std::string_view folder) {
  const size_t hash = folder.rfind('#');
  uint32_t call = 0;
  if (hash != std::string_view::npos) {
    const char* end = folder.data() + folder.size();
    const auto [stop, bad] = std::from_chars(folder.data() + hash + 1, end, call);
    if (bad == std::errc() && stop == end) return {std::string(folder.substr(0, hash)), call};
  }
  return {std::string(folder), 0};
}

std::string module_around(std::string_view name) {
  const std::string module = module_and_call(name).first;
  const size_t dot = module.rfind('.');
  return dot == std::string::npos ? std::string() : module.substr(0, dot);
}

Result<std::vector<ModuleNode>> read_module_tree(const std::string& path) {
  const auto text = read_text(path, kMaxTreeBytes);
  if (!text) return fail(text.error());
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  Reader reader;
  if (parser.parse(*text).get(root) == simdjson::SUCCESS) reader.add(root, 0);
  if (reader.nodes.empty())
    return fail(
        Error(ErrorCode::kCorrupt, path)
        << "is not a tree of modules: it needs an object with name, type and children; was the "
           "run cut short?");
  return std::move(reader.nodes);
}

ModuleCalls::ModuleCalls(const std::vector<ModuleNode>& nodes, const RecordedCalls& recorded)
    : nodes_(nodes), calls_of_(nodes.size()) {
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> parents(nodes.size(), kNone);
  for (size_t i = 0; i < nodes.size(); ++i) {
    by_name_.emplace(nodes[i].name, i);
    if (const auto around = by_name_.find(module_around(nodes[i].name)); around != by_name_.end())
      parents[i] = around->second;
  }
  // When anything in a module was called.
  std::vector<std::vector<uint64_t>> below(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    below[i].insert(below[i].end(), nodes[i].starts.begin(), nodes[i].starts.end());
    std::sort(below[i].begin(), below[i].end());
    if (parents[i] != kNone)
      below[parents[i]].insert(below[parents[i]].end(), below[i].begin(), below[i].end());
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    Calls& calls = calls_of_[i];
    calls.starts = nodes[i].starts;
    if (calls.starts.empty() && parents[i] != kNone) {
      const std::vector<uint64_t>& around = calls_of_[parents[i]].starts;
      for (size_t k = 0; k < around.size(); ++k) {
        const auto inside = std::lower_bound(below[i].begin(), below[i].end(), around[k]);
        const uint64_t next = k + 1 < around.size() ? around[k + 1] : kNever;
        if (inside != below[i].end() && *inside < next) calls.starts.push_back(*inside);
      }
    }
    if (calls.starts.empty()) calls.starts.push_back(nodes[i].first);
    std::set<uint32_t> numbers;
    for (uint32_t k = 0; k < calls.starts.size(); ++k) numbers.insert(k);
    if (const auto files = recorded.find(nodes[i].name); files != recorded.end())
      numbers.insert(files->second.begin(), files->second.end());
    calls.numbers.assign(numbers.begin(), numbers.end());
    for (size_t k = 0; k < calls.numbers.size(); ++k)
      calls_.emplace(call_name(nodes[i].name, calls.numbers[k]),
                     Call{calls.starts[std::min(k, calls.starts.size() - 1)], i, calls.numbers[k],
                          parent_call(i, k)});
  }
}

std::string ModuleCalls::parent_call(size_t node, size_t place) const {
  const std::string around = module_around(nodes_[node].name);
  const auto found = by_name_.find(around);
  if (found == by_name_.end()) return {};
  const Calls& own = calls_of_[node];
  const Calls& outer = calls_of_[found->second];
  size_t at = 0;
  if (place < own.starts.size()) {
    const auto after =
        std::upper_bound(outer.starts.begin(), outer.starts.end(), own.starts[place]);
    at = static_cast<size_t>(std::max<ptrdiff_t>(after - outer.starts.begin(), 1)) - 1;
  } else {
    // Nobody says when it was: equally often in each call of what it belongs to.
    at = place * outer.numbers.size() / own.numbers.size();
  }
  return call_name(around, outer.numbers[at]);
}

std::vector<Operation> ModuleCalls::operations() const {
  std::vector<Operation> out;
  for (size_t i = 0; i < nodes_.size(); ++i)
    for (const uint32_t number : calls_of_[i].numbers) {
      Operation& operation = out.emplace_back();
      operation.name = call_name(nodes_[i].name, number);
      operation.type = nodes_[i].type;
      operation.kind = torch_kind(nodes_[i].type);
    }
  return out;
}

const ModuleCalls::Call* ModuleCalls::find(const std::string& name) const {
  const auto found = calls_.find(name);
  return found == calls_.end() ? nullptr : &found->second;
}

std::string ModuleCalls::parent_of(const std::string& name) const {
  if (const Call* call = find(name)) return call->parent;
  std::string around = module_around(name);
  // A tree need not begin with "root": its first node has no parent there.
  return nodes_.empty() || by_name_.contains(around) ? around : std::string();
}

bool ModuleCalls::less(const std::string& a, const std::string& b) const {
  const auto key = [&](const Call* call) {
    return call != nullptr ? std::tuple(call->start, call->node, call->number)
                           : std::tuple(kNever, nodes_.size(), uint32_t{0});
  };
  const auto x = key(find(a));
  const auto y = key(find(b));
  return x != y ? x < y : natural_less(a, b);
}

}  // namespace ait::capture
