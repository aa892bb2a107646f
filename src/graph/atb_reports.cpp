#include "graph/atb_reports.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph/atb_json.h"
#include "graph/json_reader.h"

namespace ait::graph {
namespace {

struct RawNode {
  std::string name;
  std::string type;
  std::string param;
  uint64_t input_count = 0;
  uint64_t output_count = 0;
  uint64_t internal_count = 0;
  std::vector<uint64_t> input_ids;
  std::vector<uint64_t> output_ids;
  std::vector<RawNode> nodes;
};

std::vector<uint64_t> read_ids(JsonReader& json) {
  std::vector<uint64_t> ids;
  json.each_item([&] { ids.push_back(json.whole_number()); });
  return ids;
}

void read_raw_node(JsonReader& json, RawNode& node, size_t level) {
  if (level > kMaxLevels)
    return json.refuse("the nodes are nested deeper than " + std::to_string(kMaxLevels) +
                       " levels");
  const uint32_t seen = read_fields(
      json, {{"opName", [&] { node.name = json.name(); }},
             {"opType", [&] { node.type = json.name(); }},
             {"inTensorNum", [&] { node.input_count = json.whole_number(); }},
             {"outTensorNum", [&] { node.output_count = json.whole_number(); }},
             {"internalTensorNum", [&] { node.internal_count = json.whole_number(); }},
             {"param", [&] { node.param = compact(json.skip()); }},
             {"inTensorIds", [&] { node.input_ids = read_ids(json); }},
             {"outTensorIds", [&] { node.output_ids = read_ids(json); }},
             {"nodes", [&] {
                json.each_item([&] { read_raw_node(json, node.nodes.emplace_back(), level + 1); });
              }}});
  if (json.failed()) return;
  constexpr uint32_t kNeeded = 0b1111;  // the first four
  if ((seen & kNeeded) != kNeeded || node.name.empty() || node.type.empty())
    return json.refuse("a node lacks one of opName, opType, inTensorNum and outTensorNum");
  if (level == 0) return;
  if (node.input_ids.size() != node.input_count || node.output_ids.size() != node.output_count)
    json.refuse("the node " + printable(node.name) + " lists more or fewer tensors than it counts");
}

Result<RawNode> parse_graph(std::string_view raw_json, std::string_view reported_name) {
  if (raw_json.size() > kMaxJsonBytes)
    return fail(Error(ErrorCode::kUnsupported)
                << "the reported graph is larger than the " << (kMaxJsonBytes >> 20)
                << " MiB that a topology may be");
  RawNode raw;
  JsonReader json(raw_json);
  read_raw_node(json, raw, 0);
  if (auto read = json.finish(); !read) return fail(read.error());
  if (raw.name != reported_name)
    return fail(Error(ErrorCode::kCorrupt)
                << "the graph was reported as " << printable(reported_name) << " but calls itself "
                << printable(raw.name));
  return raw;
}

// Makes the names of one report, and keeps within kMaxNameBytes.
class Namer {
 public:
  bool number(const std::string& name, std::string_view role, uint64_t count,
              std::vector<std::string>& out) {
    const std::string stem = name + std::string(role);
    if (count > kMaxNameBytes / stem.size()) return spent_ = true, false;
    for (uint64_t i = 0; i < count; ++i)
      if (!add(stem + std::to_string(i), out)) return false;
    return true;
  }

  // The children of `raw` into `node`, whose own tensors are named already.
  Result<void> children(const RawNode& raw, Node& node) {
    for (const RawNode& raw_child : raw.nodes) {
      Node& child = node.nodes.emplace_back();
      child.name = raw_child.name;
      child.type = raw_child.type;
      child.param = raw_child.param;
      if (!pick(node, raw_child.input_ids, child.inputs) ||
          !pick(node, raw_child.output_ids, child.outputs) ||
          !number(child.name, "_internal_", raw_child.internal_count, child.internals))
        return fail(error(raw_child));
      if (auto named = children(raw_child, child); !named) return named;
    }
    return {};
  }

  Error error(const RawNode& raw) const {
    if (spent_)
      return Error(ErrorCode::kUnsupported)
             << "the tensor names of this graph would take more than " << (kMaxNameBytes >> 20)
             << " MiB; the counts of " << printable(raw.name) << " are probably wrong";
    return Error(ErrorCode::kCorrupt)
           << "the node " << printable(raw.name) << " uses a tensor that its parent does not have";
  }

 private:
  bool add(std::string name, std::vector<std::string>& out) {
    used_bytes_ += name.size() + 1;
    spent_ = used_bytes_ > kMaxNameBytes;
    if (!spent_) out.push_back(std::move(name));
    return !spent_;
  }

  // Inputs, outputs and internals of the parent are one list to its children.
  bool pick(const Node& parent, const std::vector<uint64_t>& ids, std::vector<std::string>& out) {
    for (uint64_t id : ids) {
      const std::string* found = nullptr;
      for (const auto* names : {&parent.inputs, &parent.outputs, &parent.internals}) {
        if (id < names->size()) {
          found = &(*names)[id];
          break;
        }
        id -= names->size();
      }
      if (found == nullptr || !add(*found, out)) return false;
    }
    return true;
  }

  size_t used_bytes_ = 0;
  bool spent_ = false;
};

struct ReportedGraph {
  std::string name;
  // Nothing where the report is damaged: there was an operation all the same.
  std::optional<RawNode> graph;
  bool taken = false;
};

// The reported graphs of a process, by type and number.
class Graphs {
 public:
  explicit Graphs(std::span<const Report> reports) {
    for (const Report& report : reports) {
      const size_t underscore = report.name.rfind('_');
      if (underscore == std::string::npos) continue;
      uint64_t id = 0;
      const char* end = report.name.data() + report.name.size();
      const auto [stop, bad] = std::from_chars(report.name.data() + underscore + 1, end, id);
      if (bad != std::errc() || stop != end) continue;
      ReportedGraph reported{report.name, std::nullopt, false};
      if (name_tensors(report.json, report.name))
        reported.graph = *parse_graph(report.json, report.name);
      by_type_[report.name.substr(0, underscore)].try_emplace(id, std::move(reported));
      ids_.insert(id);
    }
  }

  ReportedGraph* find(const Node& node, uint64_t id) {
    const auto type = by_type_.find(node.type);
    if (type == by_type_.end()) return nullptr;
    const auto found = type->second.find(id);
    return found != type->second.end() && fits(node, found->second) ? &found->second : nullptr;
  }

  // Whether the node may be operation `id`. Every operation is reported, in
  // the order of the numbers: one that is missing between others was lost, not set up elsewhere.
  bool may_be(const Node& node, uint64_t id) {
    if (find(node, id) != nullptr) return true;
    return !ids_.contains(id) && (!by_type_.contains(node.type) || id < *ids_.rbegin());
  }

  ReportedGraph* take_next(const Node& node) {
    const auto type = by_type_.find(node.type);
    if (type == by_type_.end()) return nullptr;
    const bool shared = type->second.size() == 1;
    for (auto& [id, reported] : type->second)
      if ((shared || !reported.taken) && fits(node, reported)) {
        reported.taken = true;
        return &reported;
      }
    return nullptr;
  }

 private:
  static bool fits(const Node& node, const ReportedGraph& reported) {
    return !reported.graph || (node.inputs.size() == reported.graph->input_count &&
                               node.outputs.size() == reported.graph->output_count);
  }

  std::map<std::string, std::map<uint64_t, ReportedGraph>> by_type_;
  std::set<uint64_t> ids_;
};

Result<Topology> parse_model(const Report& report) {
  auto model = parse_topology(report.json);
  if (!model) return model;
  if (!model->is_model || model->root.name != report.name)
    return fail(Error(ErrorCode::kCorrupt) << "the model was reported as " << printable(report.name)
                                           << " but calls itself " << printable(model->root.name));
  for (Node& node : model->root.nodes) node.type = node.name;
  return model;
}

Result<void> fill_in(Node& node, const RawNode& graph, Namer& namer) {
  node.internals.clear();
  node.nodes.clear();
  if (!namer.number(node.name, "_internal_", graph.internal_count, node.internals))
    return fail(namer.error(graph));
  return namer.children(graph, node);
}

}  // namespace

Result<Topology> name_tensors(std::string_view raw_json, std::string_view reported_name) {
  const auto raw = parse_graph(raw_json, reported_name);
  if (!raw) return fail(raw.error());
  Topology topology;
  Node& root = topology.root;
  root.name = raw->name;
  root.type = raw->type;
  root.param = raw->param;
  Namer namer;
  if (!namer.number(root.name, "_input_", raw->input_count, root.inputs) ||
      !namer.number(root.name, "_output_", raw->output_count, root.outputs) ||
      !namer.number(root.name, "_internal_", raw->internal_count, root.internals))
    return fail(namer.error(*raw));
  if (auto named = namer.children(*raw, root); !named) return fail(named.error());
  return topology;
}

std::vector<Result<Topology>> merge_models(std::span<const Report> graphs,
                                           std::span<const Report> models) {
  Graphs reported(graphs);
  std::vector<Result<Topology>> merged;
  merged.reserve(models.size());
  for (const Report& model : models) merged.push_back(parse_model(model));

  uint64_t counted = 0;
  bool counting_agrees = true;
  for (const auto& model : merged) {
    if (!model) continue;
    for (const Node& node : model->root.nodes) counting_agrees &= reported.may_be(node, counted++);
  }

  counted = 0;
  for (auto& model : merged) {
    if (!model) continue;
    Namer namer;
    std::optional<Error> too_much;
    for (Node& node : model->root.nodes) {
      const uint64_t id = counted++;
      const ReportedGraph* found =
          counting_agrees ? reported.find(node, id) : reported.take_next(node);
      if (counting_agrees)
        node.name = node.type + "_" + std::to_string(id);
      else if (found != nullptr)
        node.name = found->name;
      if (found == nullptr || !found->graph || too_much) continue;
      if (auto filled = fill_in(node, *found->graph, namer); !filled) too_much = filled.error();
    }
    if (too_much) model = fail(*too_much);
  }
  return merged;
}

}  // namespace ait::graph
