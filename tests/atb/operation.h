// A stand-in for the acceleration library: operations that compute nothing, and ask and tell the
// probe what the real ones do, in the same order (shared by both string ABIs).
//
//   Context context(settings);
//   Operation layer(description);
//   layer.setup(context);
//   if (layer.execute(context) != kOk) …          // a kernel overflowed and the probe said stop
//
// What a tensor contains is a function of where and when it is recorded (content.h), so that a test
// can tell for each file on disk whether every byte of it is right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atb {

constexpr int kOk = 0;
constexpr int kErrorRtFail = 4;

struct TensorDescription {
  int dtype = 1;   // float16
  int format = 2;  // nd
  std::vector<int64_t> dims;
};

struct Kernel {
  std::string name;
  uint64_t tiling_bytes = 0;
};

struct Node;

// Either `kernels`, or `nodes` (a graph), or neither (an operation that calls another library).
struct OperationDescription {
  std::string type;
  std::string param;  // JSON, empty: none
  std::vector<TensorDescription> inputs;
  std::vector<TensorDescription> outputs;
  std::vector<std::string> input_names;  // of newer versions: "intensor0_{name}.bin"
  std::vector<std::string> output_names;
  bool in_place = false;  // the first input's memory is the first output's
  std::vector<Kernel> kernels;
  int internal_tensors = 0;
  std::vector<Node> nodes;
};

// A child, and its tensors as indices into the parent's inputs, outputs, internals, in that order.
struct Node {
  OperationDescription operation;
  std::vector<int> in_ids;
  std::vector<int> out_ids;
};

struct Overflow {
  std::string operation;  // with ids: LinearOperation_2_2_0
  uint64_t round = 0;
  size_t kernel = 0;
};

struct Settings {
  int device = 0;
  // As before version 8.5: statistics of setup and execution, counted from 0.
  bool old_statistics = false;
  std::vector<Overflow> overflows;
};

// One for each thread that runs operations.
class Context {
 public:
  explicit Context(const Settings& settings);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void set_stream();
  const Settings& settings() const { return settings_; }
  void set_device(int device) { settings_.device = device; }

 private:
  Settings settings_;
};

class Operation {
 public:
  explicit Operation(OperationDescription description);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  void setup(Context& context);
  int execute(Context& context);
  const std::string& type() const { return description_.type; }

 private:
  struct Runner {
    const OperationDescription* description = nullptr;
    std::vector<int64_t> ids;
    std::string path;  // "2_PrefillLayer/0_RmsNormOperation"
    std::vector<Runner> children;
    bool wanted = false;
    std::vector<bool> kernel_wanted;
    std::string dir;  // where the probe is told to put it: "{device}_{pid}/{setups}/{path}"
    uint64_t executions = 0;

    std::string name_with_ids() const;
    std::string kernel_folder(size_t kernel) const;
    std::string content_key(const Context& context) const;
  };

  static void number(Runner& runner, const OperationDescription& description,
                     const std::vector<int64_t>& ids, const std::string& parent_path);
  static void ask_children(Runner& runner);
  static void rebuild_dirs(Runner& runner, const std::string& root);
  static void setup_runner(Runner& runner);
  static void fill_tiling(const Runner& runner, const Context& context);
  static int execute_runner(Runner& runner, const Context& context);
  static int run_kernels(const Runner& runner, const Context& context);
  static bool is_selected(const Runner& runner);
  static void save(const Runner& runner, const Context& context, const std::string& kernel_folder,
                   bool is_before);
  static std::string graph_json(const Runner& runner, const Node* node);

  const OperationDescription description_;
  Runner runner_;
  bool is_set_up_ = false;
  uint64_t setups_ = 0;
};

// Operations are numbered in the order of their first setup, from this number on.
void set_next_operation_id(int64_t id);

}  // namespace atb

namespace atb_speed {

struct ModelNode {
  atb::Operation* operation = nullptr;
  std::vector<std::string> in_tensors;
  std::vector<std::string> out_tensors;
};

struct Model {
  std::string name;
  std::vector<std::string> in_tensors;
  std::vector<std::string> out_tensors;
  std::vector<std::string> internal_tensors;
  std::vector<std::string> weight_tensors;
  std::vector<ModelNode> nodes;

  // What a model library does after each execution of a model.
  void report() const;
};

}  // namespace atb_speed
