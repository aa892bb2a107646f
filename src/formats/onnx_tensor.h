// ONNX's TensorProto: one tensor, as the test sets of models have them (input_0.pb, output_0.pb).
//
// A protobuf message without any mark of its own. It is recognised by being nothing else: every field
// is one of TensorProto's, of the wire type it must have, a type is given, and the data are as many
// as the shape needs. docs/formats/onnx_tensor.md has the fields.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::onnx_tensor {

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::onnx_tensor
