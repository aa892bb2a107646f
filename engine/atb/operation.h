// Operations: what a model is made of, and what a probe watches.
//
//   auto made = CreateOperation("LinearOperation", R"({"hasBias":false})");
//   if (!made.status.ok()) return made.status;  // its message() says why
//   VariantPack pack{{x, weight}, {y}};
//   uint64_t bytes = 0;
//   if (auto status = made.operation->Setup(pack, bytes, context); !status.ok()) return status;
//   std::vector<uint8_t> workspace(bytes);
//   return made.operation->Execute(pack, workspace.data(), bytes, context);
//
// tests/engine/example_test.cpp runs this example.
//
// Setup sees shapes, Execute sees data; both must be given the same shapes. An operation either has
// children (GraphOperation), or kernels (KernelOperation), or talks to other processes. Every one
// has a number: top-level operations count from 0 in the order of their first Setup in the process,
// children by their place in the parent.
//
// Operations are used by one thread at a time; different operations may run in different threads.
//
// This is the main header of the engine. A new operation is a class in ops/ that derives from
// ParamOperation (ops/params.h), its maker, and its line in ops/registry.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "atb/context.h"
#include "atb/fault.h"
#include "atb/save_tensor.h"
#include "atb/types.h"

namespace atb {

class AIT_ATB_API Operation {
 public:
  explicit Operation(std::string name) : name_(std::move(name)) {}
  virtual ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const std::string& GetName() const { return name_; }
  // Compact JSON with sorted keys; empty for graphs.
  virtual std::string GetParam() const { return {}; }
  // Replaces parameters; keys that are absent keep their value. Takes effect with the next Setup.
  virtual Status UpdateParam(const std::string& json);
  virtual size_t GetInputNum() const = 0;
  virtual size_t GetOutputNum() const = 0;
  // The outputs that these inputs lead to, or why they make no sense.
  virtual Status InferShape(const std::vector<TensorDesc>& in,
                            std::vector<TensorDesc>& out) const = 0;

  Status Setup(const VariantPack& pack, uint64_t& workspace_bytes, Context& context);
  Status Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspace_bytes,
                 Context& context);

  // Makes the kernels of this operation compute wrongly until it is called with nullptr; `fault`
  // must live that long. Graphs and collectives have no kernels and ignore it.
  void set_fault(const KernelFault* fault) { fault_ = fault; }
  virtual size_t child_count() const { return 0; }
  virtual Operation* child(size_t) { return nullptr; }

 protected:
  friend class GraphOperation;

  // The part of Setup and Execute that nested operations go through too.
  virtual void number(Operation* parent, size_t index, std::vector<int64_t> ids);
  virtual void ask_children() {}  // whether tensors of descendants are wanted: once, children first
  virtual void set_directory(std::string directory) { directory_ = std::move(directory); }
  Status setup_runner(const VariantPack& pack, uint64_t& workspace_bytes, Context& context);
  Status execute_runner(const VariantPack& pack, uint8_t* workspace, Context& context);

  // What kinds of operations do differently.
  virtual Status prepare(const VariantPack& pack, uint64_t& workspace_bytes, Context& context) = 0;
  virtual void fill_tiling() {}
  virtual void forget_plan() {}  // parameters changed: the next Setup plans anew
  virtual Status run(const VariantPack& pack, uint8_t* workspace, Context& context) = 0;
  virtual std::string runner_name() const;  // of the time of ACLTRANSFORMER_SAVE_TENSOR
  virtual bool is_graph() const { return false; }
  // JSON of this node for a topology report; `place` holds a child's tensor ids, ready to insert.
  struct GraphPlace {
    std::string in_ids, out_ids;
  };
  virtual std::string graph_json(const GraphPlace* place) const;

  const KernelFault* fault() const { return fault_; }
  const std::string& op_name() const { return op_name_; }  // name and ids: LinearOperation_3_1
  const std::vector<int64_t>& ids() const { return ids_; }
  const std::string& directory() const { return directory_; }
  uint64_t execute_count() const { return execute_count_; }
  std::string param_or_empty_object() const;
  void save_tensors(const VariantPack& pack, const std::string& folder) const;

 private:
  bool wanted() const;
  void report_io(const VariantPack& pack) const;
  std::string legacy_path(const Context& context) const;

  std::string name_;
  std::string op_name_;
  std::vector<int64_t> ids_;
  Operation* parent_ = nullptr;
  size_t index_ = 0;
  std::string directory_;
  bool need_save_ = false;
  bool numbered_ = false;
  uint64_t setup_count_ = 0;
  uint64_t execute_count_ = 0;
  TaskRound task_round_;
  const KernelFault* fault_ = nullptr;
};

// Makes an operation by its type name from JSON parameters; absent keys take ATB's defaults.
// Fails for unknown types, keys that the type does not have, and values that make no sense.
struct CreateResult {
  std::unique_ptr<Operation> operation;
  Status status;
};
AIT_ATB_API CreateResult CreateOperation(const std::string& type, const std::string& param_json);
AIT_ATB_API std::vector<std::string> operation_types();

// Whether the tensors of a pack are what their operation expects: number, shape, and memory.
Status check_pack(const Operation& operation, const VariantPack& pack);

// How probes and tables see a tensor.
std::string tensor_file(const std::string& folder, bool input, size_t index);

}  // namespace atb
