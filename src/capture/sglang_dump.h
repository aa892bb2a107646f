// What SGLang's dumper (sglang.srt.debug_utils.dumper) saves: one file for each tensor.
//
//     {dir}/{experiment}/step=0___rank=0___dump_index=7___name=non_intrusive__model.norm.output.pt
//     {dir}/{experiment}/step=0___rank=0___dump_index=8___name=hidden_states___layer_id=3.pt
//
// Older versions write forward_pass_id in place of step. The name says the module and its tensor
// where the dumper's own hooks recorded it (non_intrusive_mode "all"); what a program dumped by hand
// is an operation of that name, in its layer where one is given. A file holds a dict whose "value" is
// the tensor. See docs/sglang.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "capture/recording.h"

namespace ait::capture {

struct SglangFileName {
  uint64_t step = 0;
  uint64_t rank = 0;
  uint64_t index = 0;     // of the dump
  std::string operation;  // "root.model.norm"
  std::string tensor;     // "output"; empty for what is not compared: parameters, recomputed values
};
std::optional<SglangFileName> parse_sglang_file_name(std::string_view name);

bool is_sglang_dump(const std::string& path);
Result<Recording> read_sglang_dump(const std::string& path);

}  // namespace ait::capture
