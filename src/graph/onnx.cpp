#include "graph/onnx.h"

#include <sys/uio.h>

#include <map>
#include <protozero/pbf_builder.hpp>
#include <set>
#include <utility>
#include <vector>

#include "graph/atb_json.h"
#include "graph/onnx_attributes.h"
#include "record/atomic_file.h"

namespace ait::graph {
namespace {

// The fields of onnx.proto that are used here, by their numbers; protozero demands this type.
// NOLINTBEGIN(performance-enum-size)
enum class ModelField : protozero::pbf_tag_type {
  kIrVersion = 1,
  kProducer = 2,
  kGraph = 7,
  kOpset = 8
};
enum class OpsetField : protozero::pbf_tag_type { kDomain = 1, kVersion = 2 };
enum class GraphField : protozero::pbf_tag_type {
  kNode = 1,
  kName = 2,
  kInput = 11,
  kOutput = 12,
  kValueInfo = 13
};
enum class NodeField : protozero::pbf_tag_type {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDomain = 7
};
enum class AttributeField : protozero::pbf_tag_type {
  kName = 1,
  kFloats = 7,
  kStrings = 9,
  kType = 20
};
enum class ValueField : protozero::pbf_tag_type { kName = 1, kType = 2 };
enum class TypeField : protozero::pbf_tag_type { kTensor = 1, kOpaque = 7 };
enum class TensorField : protozero::pbf_tag_type { kElementType = 1, kShape = 2 };
enum class OpaqueField : protozero::pbf_tag_type { kDomain = 1, kName = 2 };
enum class ShapeField : protozero::pbf_tag_type { kDim = 1 };
enum class DimField : protozero::pbf_tag_type { kValue = 1 };
// NOLINTEND(performance-enum-size)

constexpr int32_t kAttributeFloats = 6;
constexpr int32_t kAttributeStrings = 8;

template <typename Field>
using Message = protozero::pbf_builder<Field>;

using Names = std::vector<std::string>;

// The nodes that are shown at a level, in the order in which they run.
void flatten(const Node& node, int64_t depth, int64_t level, std::vector<const Node*>& out) {
  if (node.is_leaf() || (level != kAllLevels && depth >= level)) return out.push_back(&node);
  for (const Node& child : node.nodes) flatten(child, depth + 1, level, out);
}

// What goes into and comes out of the whole.
struct Interface {
  Names inputs;
  Names outputs;
};

// Where the root does not say, its children do: what they read and none of them has written before,
// and what they write and none of them reads afterwards.
Interface interface_of(const Node& root) {
  Interface found{root.inputs, root.outputs};
  found.inputs.insert(found.inputs.end(), root.weights.begin(), root.weights.end());
  if (!found.inputs.empty() || !found.outputs.empty()) return found;
  std::set<std::string_view> known;
  std::set<std::string_view> unread;
  for (const Node& node : root.nodes) {
    for (const std::string& name : node.inputs) {
      unread.erase(name);
      if (known.insert(name).second) found.inputs.push_back(name);
    }
    known.insert(node.outputs.begin(), node.outputs.end());
    unread.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const Node& node : root.nodes)
    for (const std::string& name : node.outputs)
      if (unread.erase(name) > 0) found.outputs.push_back(name);
  return found;
}

// Which name stands for a tensor at this point of the run. ONNX allows each name one writer.
class Versions {
 public:
  // `taken`: all names of the topology, which no new one may repeat.
  explicit Versions(std::set<std::string_view> taken) : taken_(std::move(taken)) {}

  // True the first time that the tensor is met.
  bool define(const std::string& tensor) {
    return tensors_.try_emplace(tensor, State{tensor, 0}).second;
  }

  const std::string& newest(const std::string& tensor) const { return tensors_.at(tensor).name; }

  const std::string& write(const std::string& tensor) {
    if (define(tensor)) return newest(tensor);
    State& state = tensors_.at(tensor);
    do state.name = tensor + "#" + std::to_string(++state.version);
    while (taken_.contains(state.name));
    return state.name;
  }

 private:
  struct State {
    std::string name;
    uint64_t version;
  };

  std::set<std::string_view> taken_;
  std::map<std::string_view, State> tensors_;
};

struct ShownNode {
  const Node* node;
  Names inputs;
  Names outputs;
};

// The graph in the terms of ONNX, before it becomes bytes.
class OnnxGraph {
 public:
  OnnxGraph(const Topology& topology, int64_t level, const ShapeTable* table)
      : root_(topology.root), table_(table) {
    std::vector<const Node*> shown;
    flatten(root_, 0, level, shown);
    interface_ = interface_of(root_);
    Versions versions(all_names(shown));
    for (const std::string& name : root_.inputs) declare_input(versions, name);
    for (const std::string& name : root_.weights) declare_input(versions, name);
    for (const Node* node : shown) add(versions, *node);
    std::set<std::string_view> listed;
    for (const std::string& name : interface_.outputs) {
      if (name.empty() || !listed.insert(name).second) continue;
      // One that nobody writes passes through from outside, as far as can be seen.
      declare_input(versions, name);
      outputs_.emplace_back(name, versions.newest(name));
    }
    if (table_ != nullptr) find_hidden_types();
  }

  std::string bytes() const {
    std::string out;
    Message<ModelField> model(out);
    model.add_int64(ModelField::kIrVersion, kOnnxIrVersion);
    model.add_string(ModelField::kProducer, "ait");
    {
      Message<GraphField> graph(model, ModelField::kGraph);
      for (const ShownNode& node : nodes_) write_node(graph, node);
      graph.add_string(GraphField::kName, root_.name);
      for (const std::string& name : inputs_) write_value(graph, GraphField::kInput, name, name);
      for (const auto& [tensor, name] : outputs_)
        write_value(graph, GraphField::kOutput, tensor, name);
      write_value_infos(graph);
    }
    Message<OpsetField> opset(model, ModelField::kOpset);
    opset.add_string(OpsetField::kDomain, kOnnxDomain.data(), kOnnxDomain.size());
    opset.add_int64(OpsetField::kVersion, kOnnxDomainVersion);
    opset.commit();
    return out;
  }

 private:
  std::set<std::string_view> all_names(const std::vector<const Node*>& shown) const {
    std::set<std::string_view> names(interface_.inputs.begin(), interface_.inputs.end());
    names.insert(interface_.outputs.begin(), interface_.outputs.end());
    for (const Node* node : shown) {
      names.insert(node->inputs.begin(), node->inputs.end());
      names.insert(node->outputs.begin(), node->outputs.end());
    }
    return names;
  }

  void declare_input(Versions& versions, const std::string& name) {
    if (!name.empty() && versions.define(name)) inputs_.push_back(name);
  }

  void add(Versions& versions, const Node& node) {
    // The root itself, at level 0, is connected to all that the graph is.
    const bool is_root = &node == &root_;
    const Names& reads = is_root ? interface_.inputs : node.inputs;
    const Names& writes = is_root ? interface_.outputs : node.outputs;
    ShownNode& shown = nodes_.emplace_back(ShownNode{&node, {}, {}});
    for (const std::string& name : reads) {
      declare_input(versions, name);
      shown.inputs.push_back(name.empty() ? name : versions.newest(name));
    }
    for (const std::string& name : writes)
      shown.outputs.push_back(name.empty() ? name : versions.write(name));
    // Onnx refuses a node without any tensor; a nameless one stands for none.
    if (shown.inputs.empty() && shown.outputs.empty()) shown.outputs.emplace_back();
    const auto* row = table_ == nullptr ? nullptr : table_->find(node);
    if (row == nullptr) return;
    // Not of a root with weights, which has more inputs than its row.
    if (shown.inputs.size() == row->inputs.size()) learn(shown.inputs, row->inputs);
    if (shown.outputs.size() == row->outputs.size()) learn(shown.outputs, row->outputs);
  }

  using Types = std::map<std::string, const TensorType*, std::less<>>;

  void learn(const Names& names, const std::vector<TensorType>& types) {
    for (size_t i = 0; i < names.size(); ++i) types_.try_emplace(names[i], &types[i]);
  }

  // The table has leaves only; what is inside a node that is not opened knows its tensors, too.
  // Where a tensor changes its shape on the way, which version has which cannot be told.
  void find_hidden_types() {
    const auto learn_hidden = [&](const Names& names, const std::vector<TensorType>& types) {
      for (size_t i = 0; i < names.size(); ++i) {
        const auto [known, is_new] = hidden_types_.try_emplace(names[i], &types[i]);
        if (!is_new && known->second != nullptr && *known->second != types[i])
          known->second = nullptr;
      }
    };
    walk(root_, [&](const Node& node, std::span<const Node* const>) {
      if (const auto* row = table_->find(node)) {
        learn_hidden(node.inputs, row->inputs);
        learn_hidden(node.outputs, row->outputs);
      }
    });
  }

  const TensorType* type_of(std::string_view tensor, std::string_view name) const {
    if (const auto type = types_.find(name); type != types_.end()) return type->second;
    const auto hidden = hidden_types_.find(tensor);
    return hidden == hidden_types_.end() ? nullptr : hidden->second;
  }

  static void write_node(Message<GraphField>& graph, const ShownNode& shown) {
    Message<NodeField> out(graph, GraphField::kNode);
    for (const std::string& name : shown.inputs) out.add_string(NodeField::kInput, name);
    for (const std::string& name : shown.outputs) out.add_string(NodeField::kOutput, name);
    out.add_string(NodeField::kName, shown.node->name);
    out.add_string(NodeField::kOpType, shown.node->type);
    out.add_string(NodeField::kDomain, kOnnxDomain.data(), kOnnxDomain.size());
    for (const OnnxAttribute& attribute : onnx_attributes(shown.node->param)) {
      Message<AttributeField> field(out, NodeField::kAttribute);
      field.add_string(AttributeField::kName, attribute.name);
      if (attribute.is_text)
        for (const std::string& text : attribute.strings)
          field.add_bytes(AttributeField::kStrings, text);
      else
        field.add_packed_float(AttributeField::kFloats, attribute.floats.begin(),
                               attribute.floats.end());
      field.add_enum(AttributeField::kType,
                     attribute.is_text ? kAttributeStrings : kAttributeFloats);
    }
  }

  static void write_tensor_type(Message<ValueField>& value, const TensorType& tensor) {
    Message<TypeField> type(value, ValueField::kType);
    Message<TensorField> fields(type, TypeField::kTensor);
    fields.add_int32(TensorField::kElementType, tensor.element_type);
    // Through a text of its own: a scalar's shape is an empty message, which a builder would leave
    // out.
    std::string dims;
    Message<ShapeField> shape(dims);
    for (const int64_t dim : tensor.dims) {
      Message<DimField> one(shape, ShapeField::kDim);
      one.add_int64(DimField::kValue, dim);
    }
    fields.add_message(TensorField::kShape, dims);
  }

  void write_value(Message<GraphField>& graph, GraphField where, std::string_view tensor,
                   const std::string& name) const {
    Message<ValueField> value(graph, where);
    value.add_string(ValueField::kName, name);
    if (const TensorType* known = type_of(tensor, name)) return write_tensor_type(value, *known);
    Message<TypeField> type(value, ValueField::kType);
    Message<OpaqueField> opaque(type, TypeField::kOpaque);
    opaque.add_string(OpaqueField::kDomain, "ait");
    opaque.add_string(OpaqueField::kName, "unrecorded");
  }

  // Of tensors between the nodes, where something is known of them.
  void write_value_infos(Message<GraphField>& graph) const {
    std::set<std::string_view> described(inputs_.begin(), inputs_.end());
    for (const auto& [tensor, name] : outputs_) described.insert(name);
    for (const ShownNode& shown : nodes_) {
      const Names& tensors = shown.node == &root_ ? interface_.outputs : shown.node->outputs;
      for (size_t i = 0; i < tensors.size(); ++i) {
        const std::string& name = shown.outputs[i];
        const TensorType* known = name.empty() ? nullptr : type_of(tensors[i], name);
        if (known == nullptr || !described.insert(name).second) continue;
        Message<ValueField> value(graph, GraphField::kValueInfo);
        value.add_string(ValueField::kName, name);
        write_tensor_type(value, *known);
      }
    }
  }

  const Node& root_;
  const ShapeTable* table_;
  Interface interface_;
  Names inputs_;
  std::vector<std::pair<std::string_view, std::string>> outputs_;  // the tensor, its last version
  std::vector<ShownNode> nodes_;
  Types types_;         // by the name of the version
  Types hidden_types_;  // by the name of the tensor
};

}  // namespace

Result<std::string> to_onnx(const Topology& topology, int64_t level, const ShapeTable* table) {
  if (level < 0 && level != kAllLevels)
    return fail(Error(ErrorCode::kUsage)
                << "the level " << level
                << " makes no sense; give 0 or more, or -1 for everything down to the leaves");
  return OnnxGraph(topology, level, table).bytes();
}

Result<std::string> onnx_path_of(const std::string& json_path) {
  constexpr std::string_view kJson = ".json";
  if (!json_path.ends_with(kJson))
    return fail(Error(ErrorCode::kUsage, json_path)
                << "the name of a topology file ends in .json; the ONNX file gets the same name");
  return json_path.substr(0, json_path.size() - kJson.size()) + ".onnx";
}

Result<void> write_bytes(const std::string& path, const std::string& bytes) {
  const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  if (const auto status = record::write_file(path.c_str(), &part, 1); !status.ok())
    return fail(unwritable(path, status.step, status.error_number));
  return {};
}

Result<OnnxFile> convert_to_onnx(const std::string& json_path, int64_t level) {
  auto path = onnx_path_of(json_path);
  if (!path) return fail(path.error());
  const auto topology = read_topology(json_path);
  if (!topology) return fail(topology.error());
  OnnxFile file{*path, std::nullopt};
  std::optional<ShapeTable> shapes;
  if (const auto table_path = find_operation_table(json_path)) {
    if (auto table = ShapeTable::read(*table_path))
      shapes = std::move(*table);
    else
      file.table_problem = table.error();
  }
  const auto bytes = to_onnx(*topology, level, shapes ? &*shapes : nullptr);
  if (!bytes) return fail(bytes.error());
  if (auto written = write_bytes(file.path, *bytes); !written) return fail(written.error());
  return file;
}

}  // namespace ait::graph
