// The models that the host runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operation.h"

namespace host {

struct ModelOptions {
  std::string model = "llama";  // or "spec"
  int layers = 2;
  std::vector<int64_t> dims = {2, 3};
  int dtype = 1;
  int format = 2;
  bool has_parameter_names = false;
  std::string param = R"({"elewiseType":"ELEWISE_ADD"})";  // of ElewiseOperation
  int warm_operations = 0;                                 // that run before the model, once
  int setups_per_execution = 1;
  int executions_per_setup = 1;
};

// "llama": a prefill model of two embeddings and `layers` layers, then a decode model of as many
// layers of its own. "spec": one layer of two operations.
class Session {
 public:
  // `suffix` goes to the names of models and top-level operations.
  Session(const ModelOptions& options, const std::string& suffix);

  // Round 0 runs the prefill model, the others the decode model. `between` is called after each
  // operation. Returns the first status that is not kOk.
  int step(int round, atb::Context& context, void (*between)());

 private:
  atb_speed::Model build_prefill(const std::string& suffix);
  atb_speed::Model build_decode(const std::string& suffix);
  atb_speed::Model build_spec(const std::string& suffix);
  int run(atb::Operation& operation, atb::Context& context, void (*between)()) const;
  atb::Operation* own(atb::OperationDescription description);

  const ModelOptions options_;
  std::vector<std::unique_ptr<atb::Operation>> operations_;
  std::vector<atb::Operation*> warm_;
  std::vector<atb_speed::Model> models_;  // of the first round and of the later ones
};

}  // namespace host
