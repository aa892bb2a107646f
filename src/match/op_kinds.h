// What an operation or a module does, from the name of its type: the table that lets types of torch
// and of the acceleration library correspond. It is a hint that settles what data leave open, and
// unknown types cost nothing but that hint.
//
// A person can add to it (`--op-mapping-file`):
//
//     {"RmsNormOperation": ["LlamaRMSNorm"], "LinearOperation": "Linear",
//      "DemoLayer_outtensor0": ["DemoBlock_output_0"]}
//     [{"atb": "DemoLayer", "torch": "DemoBlock", "atb_tensor": "outtensor0"}]
//
// Keys are types of the acceleration library, values types of torch; either matches any type that
// contains it. What follows "_outtensor", "_intensor", "_output" or "_input" names one tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"

namespace ait::match {

enum class OpKind : uint8_t {
  kUnknown,
  kEmbedding,
  kNorm,
  kLinear,
  kActivation,
  kAttention,
  kAdd,
  kMultiply,
  kRotary,
  kCache,
  kQuantise,
  kOther,  // computes something that no module of torch does
  kMove,   // passes data on, wholly or in part: split, transpose, all-reduce, cast
};

// Of an acceleration library's operation, whose parameters tell additions from other element-wise
// work.
OpKind atb_kind(std::string_view type, std::string_view param);

// Of a torch module.
OpKind torch_kind(std::string_view type);

OpKind kind_of(const capture::Recording& recording, uint32_t operation);

// One line of a mapping file.
struct TypeMapping {
  std::string atb;
  std::string torch;
  std::string atb_tensor;    // "outtensor0"; empty: outputs
  std::string torch_tensor;  // "output_0"; empty: outputs
};

// `path` is the file, or a folder that may hold op_mapping_file.json.
Result<std::vector<TypeMapping>> read_op_mapping(const std::string& path);

}  // namespace ait::match
