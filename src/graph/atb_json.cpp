#include "graph/atb_json.h"

#include "base/mapped_file.h"
#include "graph/json_reader.h"

namespace ait::graph {
namespace {

std::vector<std::string> read_names(JsonReader& json) {
  std::vector<std::string> names;
  json.each_item([&] { names.push_back(json.name()); });
  return names;
}

std::string without_ids(const std::string& name) {
  const size_t last = name.find_last_not_of("0123456789_");
  return last == std::string::npos ? name : name.substr(0, last + 1);
}

// `model_name` takes the root's name where it is a model's; null for all other nodes.
void read_node(JsonReader& json, Node& node, std::string* model_name, size_t level) {
  if (level > kMaxLevels)
    return json.refuse("the nodes are nested deeper than " + std::to_string(kMaxLevels) +
                       " levels");
  read_fields(
      json,
      {{"opName", [&] { node.name = json.name(); }},
       {"opType", [&] { node.type = json.name(); }},
       {"modelName",
        [&] { model_name != nullptr ? void(*model_name = json.name()) : void(json.skip()); }},
       {"param", [&] { node.param = compact(json.skip()); }},
       {"inTensors", [&] { node.inputs = read_names(json); }},
       {"outTensors", [&] { node.outputs = read_names(json); }},
       {"internalTensors", [&] { node.internals = read_names(json); }},
       {"weightTensors", [&] { node.weights = read_names(json); }},
       {"nodes", [&] {
          json.each_item([&] { read_node(json, node.nodes.emplace_back(), nullptr, level + 1); });
        }}});
  if (json.failed()) return;
  const bool is_model = model_name != nullptr && !model_name->empty();
  if (is_model && !node.name.empty())
    return json.refuse("both modelName and opName are given, so it is neither a model nor a layer");
  if (is_model) node.name = *model_name;
  if (node.name.empty())
    return json.refuse(model_name != nullptr ? "neither opName nor modelName says what this is; a "
                                               "topology file of a dump is expected"
                                             : "a node has no opName");
  if (is_model)
    node.type = node.name;
  else if (node.type.empty())
    node.type = without_ids(node.name);
}

void append_list(std::string& out, std::string_view key, const std::vector<std::string>& names) {
  if (names.empty()) return;
  out += ",\"";
  out += key;
  out += "\":[";
  for (const std::string& name : names) {
    append_quoted(out, name);
    out += ',';
  }
  out.back() = ']';
}

void append_node(std::string& out, const Node& node, bool is_model) {
  out += is_model ? "{\"modelName\":" : "{\"opName\":";
  append_quoted(out, node.name);
  if (!is_model) {
    out += ",\"opType\":";
    append_quoted(out, node.type);
  }
  if (!node.param.empty()) {
    out += ",\"param\":";
    out += node.param;
  }
  append_list(out, "inTensors", node.inputs);
  append_list(out, "outTensors", node.outputs);
  append_list(out, "internalTensors", node.internals);
  append_list(out, "weightTensors", node.weights);
  if (!node.nodes.empty()) {
    out += ",\"nodes\":[";
    for (const Node& child : node.nodes) {
      append_node(out, child, false);
      out += ',';
    }
    out.back() = ']';
  }
  out += '}';
}

}  // namespace

Result<Topology> parse_topology(std::string_view json) {
  if (json.size() > kMaxJsonBytes)
    return fail(Error(ErrorCode::kUnsupported)
                << "is larger than the " << (kMaxJsonBytes >> 20) << " MiB that a topology may be");
  Topology topology;
  std::string model_name;
  JsonReader reader(json);
  read_node(reader, topology.root, &model_name, 0);
  if (auto read = reader.finish(); !read) return fail(read.error());
  topology.is_model = !model_name.empty();
  return topology;
}

Result<Topology> read_topology(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto bytes = (*file)->bytes();
  auto topology = parse_topology({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!topology) return fail(topology.error().set_path(path));
  return topology;
}

std::string to_json(const Topology& topology) {
  std::string out;
  append_node(out, topology.root, topology.is_model);
  out += '\n';
  return out;
}

}  // namespace ait::graph
