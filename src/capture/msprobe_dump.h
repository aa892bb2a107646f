// What msprobe's PrecisionDebugger records of torch and MindSpore models.
//
//     {root}/step{n}/{rank{r}|proc{pid}}/dump.json       calls, their tensors and statistics
//     {root}/step{n}/{rank{r}|proc{pid}}/construct.json  {call: the call that it was made in}
//     {root}/step{n}/{rank{r}|proc{pid}}/dump_tensor_data/{call}.output.0.pt, .npy
//
// A call is "Module.{path}.{Class}.forward.{number}", "Cell.…", or of a function
// "Torch.softmax.{number}.forward". One step holds all tokens of a generate(): the round of a call is
// the number of the outermost module call that it was made in. Operations and tensors get the names
// that register_hook gives them, "root.{path}" and "input_0", "output": see docs/msprobe.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "capture/recording.h"
#include "capture/torch_dump.h"

namespace ait::capture {

// A key of dump.json and of construct.json.
struct MsprobeCall {
  enum class Kind : uint8_t { kModule, kFunction };
  enum class Pass : uint8_t { kForward, kBackward, kGradients };
  Kind kind = Kind::kModule;
  Pass pass = Pass::kForward;
  std::string_view path;  // "model.layers.0.mlp"; of a function its name, "softmax"
  std::string_view type;  // "LlamaMLP"; of a function "Torch.softmax"
  uint32_t number = 0;
  bool is_numbered = true;  // "….parameters_grad" of older versions is not
};
std::optional<MsprobeCall> parse_msprobe_call(std::string_view key);

// Whether a path is one, or one step or rank of one.
bool is_msprobe_dump(const std::string& path);

// Fails where there is none. A rank's file that cannot be read is one of `problems`.
Result<Recording> read_msprobe_dump(const std::string& path);

}  // namespace ait::capture
