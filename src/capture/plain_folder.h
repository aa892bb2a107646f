// A folder of tensor files from any source: each file is one record, its path below the folder its
// operation.
//
//     dump/layers.0/output.npy      operation "layers.0/output.npy"
//     dump/layers.0/input_0.pth     operation "layers.0/input_0.pth"
//
// Hidden files (our own temporary names among them) are passed over; so are files whose extension
// says that they are no tensors (.json, .csv, .txt, .md, .log, .yaml, .py, .onnx).
#pragma once

#include "capture/capture.h"

namespace ait::capture {

// Whether it is a folder at all.
bool is_plain_folder(const std::string& path);

// Fails when `root` is not a folder that can be listed; a sub-folder that cannot is one of
// `problems`.
Result<Capture> read_plain_folder(const std::string& root);

}  // namespace ait::capture
