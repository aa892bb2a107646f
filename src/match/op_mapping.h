// Types of operations that a person says correspond (`--op-mapping-file`).
//
//     {"RmsNormOperation": ["LlamaRMSNorm"], "LinearOperation": "Linear",
//      "DemoLayer_outtensor0": ["DemoBlock_output_0"]}
//     [{"atb": "DemoLayer", "torch": "DemoBlock", "atb_tensor": "outtensor0"}]
//
// Keys are types of the acceleration library, values types of torch; either matches any type that
// contains it. What follows "_outtensor", "_intensor", "_output" or "_input" names one tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::match {

// One line of a mapping file.
struct TypeMapping {
  std::string library;         // a type of the acceleration library
  std::string module;          // a type of torch
  std::string library_tensor;  // "outtensor0"; empty: outputs
  std::string module_tensor;   // "output_0"; empty: outputs
};

// Whether a tensor is the one that a mapping names. The only output of a module is "output" or
// "output_0", as it was recorded.
bool is_tensor_named(std::string_view tensor, std::string_view name);

// `path` is the file, or a folder that holds op_mapping_file.json. There is at least one.
Result<std::vector<TypeMapping>> read_op_mapping(const std::string& path);

}  // namespace ait::match
