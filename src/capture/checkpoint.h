// Weights by name: one file that holds several tensors (safetensors, torch state dict, npz), or a
// folder of such files with or without an index.
//
//     model.safetensors
//     model-00001-of-00002.safetensors …   model.safetensors.index.json
//     pytorch_model-00001-of-00002.bin …   pytorch_model.bin.index.json
//
// An index is {"weight_map": {"name of a tensor": "name of its file", …}}.
//
// Each tensor is a record: operation and member are its name.
#pragma once

#include "capture/capture.h"

namespace ait::capture {

// Whether a path looks like one: a file of several tensors, or a folder that has an index or
// safetensors files directly inside.
bool is_checkpoint(const std::string& path);

// `path` is a file or a folder. Fails where it, or an index, cannot be read; a shard that cannot be
// opened is one of `problems`, and what the index says lies in it still gets records, so that
// nothing goes missing unnoticed.
Result<Capture> read_checkpoint(const std::string& path);

}  // namespace ait::capture
