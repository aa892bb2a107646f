// What transformers' model_addition_debugger leaves of the last call of a model, with
// use_repr=False: a file for each tensor, and the tree of calls.
//
//     {path}/LlamaForCausalLM_debug_tree_FULL_TENSORS.json
//     {path}/LlamaForCausalLM.model.norm_inputs_args_0.safetensors
//     {path}/LlamaForCausalLM.model.norm_outputs.safetensors
//
// With do_prune_layers, which is the default, the tree lacks the layers in the middle, of which there
// are files all the same. See docs/transformers_debug.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "capture/recording.h"

namespace ait::capture {

struct DebuggedTensor {
  std::string module;  // "root.model.norm"
  std::string tensor;  // "input_0", "input_hidden_states", "output"
};
// `model` is the class, with which every name begins.
std::optional<DebuggedTensor> parse_debugged_tensor(std::string_view file, std::string_view model);

bool is_transformers_debug(const std::string& path);

// Fails where the tree cannot be read, and where only texts of tensors were kept (use_repr=True).
Result<Recording> read_transformers_debug(const std::string& path);

}  // namespace ait::capture
