// msprobe's dump.json: what was recorded of every call, statistics of its tensors included.
//
//     {"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": null, "data": {
//       "Module.model.norm.LlamaRMSNorm.forward.0": {
//         "input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1, 3, 32],
//                         "Max": 0.5, "Min": -0.5, "Mean": 0.0, "Norm": 1.5, "md5": "f8a08fe5"}],
//         "input_kwargs": {}, "output": […], "parameters": {"weight": {…}}}}}
//
// Each tensor goes by the name that its file has without the extension:
// "Module.model.norm.LlamaRMSNorm.forward.0.input.0". load() fails with a message that begins
// "tensor has no data."; data lie in files beside this one. docs/formats/msprobe_json.md has the
// details.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::msprobe_json {

// What simdjson can look into.
inline constexpr size_t kMaxBytes = size_t{3} << 30;

bool sniff(std::span<const std::byte> bytes);

// A tensor that cannot be described is left out and counted in the note.
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

// One tensor. Texts live as long as the call that hands it over.
struct Item {
  std::string_view key;    // "Module.model.norm.LlamaRMSNorm.forward.0"
  std::string_view part;   // "input_args", "input_kwargs", "input", "output", "parameters", or of
                           // "….parameters_grad.0" the parameter
  std::string_view place;  // in it: "0", "position_embeddings.1", "0.last_hidden_state"
  std::string_view data_name;              // of its file; empty where there is none
  std::optional<Description> description;  // nothing: of a type or shape that ait does not know

  std::string name() const;
};

// Calls visit(item) for every tensor of a dump.json, in its order. Errors carry the path.
Result<void> each_tensor(const MappedFile& file, const std::function<void(const Item&)>& visit);

}  // namespace ait::formats::msprobe_json
