// The parameters of an operation as attributes of an ONNX node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ait::graph {

// Exactly one of the two lists is meant, FLOATS or STRINGS.
struct OnnxAttribute {
  std::string name;
  bool is_text = false;
  std::vector<float> floats;
  std::vector<std::string> strings;
};

// One for each member of the object `param`; an object inside is spread one level, to "key.sub".
// Numbers and bools are FLOATS, texts STRINGS, lists of either have all their elements; null is
// left out, and what is deeper or mixed is one STRINGS of its JSON text. Of equal names the last
// counts. Nothing where `param` is no object.
std::vector<OnnxAttribute> onnx_attributes(std::string_view param);

}  // namespace ait::graph
