// What register_hook and its predecessors record of a torch model.
//
//     {root}/torch_tensors/{device}_{pid}/{token}/{module}/output.pth  output_0.pth  input_0.pth …
//     {root}/torch_tensors/{device}_{pid}/{token}/statistics.csv
//     {root}/torch_tensors/{device}_{pid}/{token}/{module}/statistics.csv
//         in place of these files, or beside them: of the whole round, or of each module
//     {root}/torch_tensors/{device}_{pid}/model_tree.json
//         {"name": "root", "type": "LlamaForCausalLM", "children": […], "order": 0}
//
// {module} is the module's full name, with "#1", "#2" where it was called again in the same round:
// each call is an operation (module_tree.h). Old versions write {pid}_{device}, some with "npu"
// before the number.
#pragma once

#include <string>
#include <string_view>

#include "capture/recording.h"

namespace ait::capture {

inline constexpr Traits kTorchTraits = {.words = "a torch dump",
                                        .identity = Traits::Identity::kNames,
                                        .rounds = Traits::Rounds::kCalls,
                                        .batch = Traits::Batch::kApart,
                                        .types = Traits::Types::kModules,
                                        .inputs_are_values = true};

OpKind torch_kind(std::string_view type);

// Whether a path is one, or a part of one: see dump_folders.h.
bool is_torch_dump(const std::string& path);

// The folders of all processes and models, {root}/torch_tensors/cpu_4711 and so on; none where there
// is no such dump.
Result<std::vector<Rank>> find_torch_folders(const std::string& path);

// Fails where there is none, or where its tree cannot be read. What is missing or makes no sense is
// one of `problems`.
Result<Recording> read_torch_dump(const std::string& path);

}  // namespace ait::capture
