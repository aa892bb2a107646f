// The files beside the tensors of a run, each where its reader looks for it. The replay of the
// corpora (tests/attacks) includes it too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "capture/atb_dump.h"
#include "capture/checkpoint.h"
#include "capture/labels.h"
#include "capture/manual_mapping.h"
#include "capture/msprobe_dump.h"
#include "capture/torch_dump.h"
#include "fuzz/input_folder.h"
#include "graph/atb_param.h"

namespace ait::fuzz {

// metadata.json of dump_data. What was understood stays as it is when a pair is added to it.
inline int read_as_metadata(const uint8_t* data, size_t size) {
  InputFolder::with("golden_tensor/metadata.json", data, size);
  const std::string& root = InputFolder::only().path();
  auto mapping = capture::read_manual_mapping(root);
  if (!mapping) return 0;
  capture::find_moved_files(*mapping, root);
  const capture::MappedPair pair{"fuzz", "0", "golden", "my"};
  if (!capture::add_to_metadata(root + "/golden_tensor", {&pair, 1})) std::abort();
  const auto again = capture::read_manual_mapping(root);
  if (!again || !again->problems.empty()) std::abort();
  return 0;
}

// The index of a checkpoint's shards.
inline int read_as_index(const uint8_t* data, size_t size) {
  InputFolder::with("model.safetensors.index.json", data, size);
  const std::string& root = InputFolder::only().path();
  const auto checkpoint = capture::read_checkpoint(root);
  if (!checkpoint) return 0;
  for (const capture::TensorRecord& record :
       checkpoint->records)  // beside the index, not elsewhere
    if (std::filesystem::path(record.path).parent_path() != root) std::abort();
  return 0;
}

// The labels of a task.
inline int read_as_labels(const uint8_t* data, size_t size) {
  InputFolder::with("7_0_labels.jsonl", data, size);
  static_cast<void>(capture::read_labels(InputFolder::only().path()));
  return 0;
}

// The modules of a torch model.
inline int read_as_model_tree(const uint8_t* data, size_t size) {
  InputFolder::with("torch_tensors/cpu_7/model_tree.json", data, size);
  InputFolder::only().write("torch_tensors/cpu_7/0/root.a/output.pth", "x");
  const auto recording = capture::read_torch_dump(InputFolder::only().path());
  if (!recording) return 0;
  for (uint32_t i = 0; i < recording->operations.size(); ++i) {  // parents before what is in them
    const capture::Operation& operation = recording->operations[i];
    if (operation.parent != capture::kNoOperation && operation.parent >= i) std::abort();
    if (operation.end <= i || operation.end > recording->operations.size()) std::abort();
  }
  return 0;
}

// dump.json of msprobe, and after a NUL its construct.json.
inline int read_as_msprobe_dump(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\0');
  InputFolder::with("step0/rank0/dump.json", data, std::min(end, size));
  if (end != std::string_view::npos)
    InputFolder::only().write("step0/rank0/construct.json", text.substr(end + 1));
  const auto recording = capture::read_msprobe_dump(InputFolder::only().path());
  if (!recording) return 0;
  for (uint32_t i = 0; i < recording->operations.size(); ++i) {  // parents before what is in them
    const capture::Operation& operation = recording->operations[i];
    if (operation.parent != capture::kNoOperation && operation.parent >= i) std::abort();
    if (operation.end <= i || operation.end > recording->operations.size()) std::abort();
  }
  for (size_t round = 0; round < recording->rounds.size(); ++round)
    for (uint32_t slot = 0; slot < recording->slots.size(); ++slot)
      if (recording->has(0, round, slot) && recording->record(0, round, slot).member.empty())
        std::abort();  // there are no files beside it
  return 0;
}

// The parameters of an operation: op_param.json, `param` of a topology, OpParam of a table.
inline int read_as_op_param(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  graph::AtbParam param(text);
  for (const auto& [name, written] : param.members()) {
    // A mistake is remembered and ends all further questions, so each asks anew.
    static_cast<void>(graph::AtbParam(text).integer(name, 1));
    static_cast<void>(graph::AtbParam(text).number(name, 1));
    static_cast<void>(graph::AtbParam(text).flag(name, true));
    static_cast<void>(graph::AtbParam(text).text(name, ""));
    static_cast<void>(graph::AtbParam(text).integers(name, {}));
    static_cast<void>(graph::AtbParam(text).numbers(name, {}));
    static_cast<void>(graph::AtbParam(text).choice(name, graph::ElewiseType::kUndefined));
    if (written.data() < text.data() || written.data() + written.size() > text.data() + size)
      std::abort();
    if (param.members().size() > 16) break;  // the square of their number is enough
  }
  static_cast<void>(param.finish());
  InputFolder::with("tensors/0_7/0/0_Elewise/op_param.json", data, size);
  InputFolder::only().write("tensors/0_7/0/0_Elewise/after/outtensor0.bin", "x");
  static_cast<void>(capture::read_atb_dump(InputFolder::only().path()));
  return 0;
}

}  // namespace ait::fuzz
