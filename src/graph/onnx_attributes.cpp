#include "graph/onnx_attributes.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "graph/atb_param.h"
#include "graph/json_reader.h"

namespace ait::graph {
namespace {

using Kind = JsonReader::Kind;

// ONNX wants every attribute to have a name.
constexpr std::string_view kNameOfEmptyKey = "_";

// Nothing for a number that a double cannot hold.
std::optional<float> as_float(std::string_view written) {
  double value = 0;
  const auto [end, bad] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (bad != std::errc()) return std::nullopt;
  if (std::abs(value) > std::numeric_limits<float>::max())
    return std::copysign(std::numeric_limits<float>::infinity(),
                         static_cast<float>(value > 0 ? 1 : -1));
  return static_cast<float>(value);
}

// One number, bool or text onto the end of the attribute; whether it went in.
bool append_scalar(JsonReader& json, OnnxAttribute& attribute) {
  const auto kind = json.kind();
  if (kind == Kind::kString) {
    attribute.is_text = true;
    attribute.strings.push_back(json.string());
    return attribute.floats.empty();
  }
  const std::string_view written = json.skip();
  std::optional<float> value;
  if (kind == Kind::kBool) value = written == "true" ? 1.0F : 0.0F;
  if (kind == Kind::kNumber) value = as_float(written);
  if (!value) return false;
  attribute.floats.push_back(*value);
  return !attribute.is_text;
}

OnnxAttribute attribute_of(const AtbParam::Member& member) {
  JsonReader json(member.written);
  OnnxAttribute attribute;
  attribute.name = member.name.empty() ? std::string(kNameOfEmptyKey) : member.name;
  const auto kind = json.kind();
  bool plain = true;
  if (kind == Kind::kArray)
    json.each_item([&] { plain &= append_scalar(json, attribute); });
  else
    plain = kind != Kind::kObject && append_scalar(json, attribute);
  if (!plain) {
    attribute.is_text = true;
    attribute.floats.clear();
    attribute.strings = {compact(member.written)};
  }
  return attribute;
}

}  // namespace

std::vector<OnnxAttribute> onnx_attributes(std::string_view param) {
  std::vector<OnnxAttribute> attributes;
  std::map<std::string, size_t> places;
  const AtbParam read(param);
  for (const AtbParam::Member& member : read.members()) {
    OnnxAttribute attribute = attribute_of(member);
    const auto [place, is_new] = places.try_emplace(attribute.name, attributes.size());
    if (is_new)
      attributes.push_back(std::move(attribute));
    else
      attributes[place->second] = std::move(attribute);
  }
  return attributes;
}

}  // namespace ait::graph
