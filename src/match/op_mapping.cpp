#include "match/op_mapping.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/text_file.h"

namespace ait::match {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMappingFile = "op_mapping_file.json";
constexpr size_t kMaxMappingBytes = size_t{16} << 20;

bool is_type_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

// "DemoLayer_outtensor0" as {"DemoLayer", "outtensor0"}. Types may hold underscores themselves.
std::pair<std::string, std::string> type_and_tensor(std::string_view text) {
  for (const std::string_view word : {"_outtensor", "_intensor", "_output", "_input"}) {
    const size_t at = text.rfind(word);
    if (at != std::string_view::npos && at > 0)
      return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
  }
  return {std::string(text), ""};
}

Error invalid(const std::string& path, std::string_view why) {
  return Error(ErrorCode::kCorrupt, path)
         << "Invalid op_mapping file: " << why
         << "; expected {\"RmsNormOperation\": [\"LlamaRMSNorm\"]}";
}

Result<void> add_record(const std::string& path, const simdjson::dom::element& element,
                        std::vector<TypeMapping>& out) {
  TypeMapping mapping;
  const auto text = [&](const char* key, std::string& to, bool required) {
    std::string_view value;
    const auto code = element[key].get(value);
    if (code == simdjson::NO_SUCH_FIELD) return !required;
    to = value;
    return code == simdjson::SUCCESS && is_type_name(value);
  };
  if (!text("atb", mapping.library, true) || !text("torch", mapping.module, true) ||
      !text("atb_tensor", mapping.library_tensor, false) ||
      !text("torch_tensor", mapping.module_tensor, false))
    return fail(invalid(path, "a list must hold objects with the texts atb and torch"));
  out.push_back(std::move(mapping));
  return {};
}

Result<void> add_entry(const std::string& path, std::string_view key,
                       const simdjson::dom::element& value, std::vector<TypeMapping>& out) {
  const auto add = [&](std::string_view torch) -> Result<void> {
    if (!is_type_name(key) || !is_type_name(torch))
      return fail(invalid(path, "types consist of letters, digits and _, not " +
                                    printable(is_type_name(key) ? torch : key)));
    TypeMapping mapping;
    std::tie(mapping.library, mapping.library_tensor) = type_and_tensor(key);
    std::tie(mapping.module, mapping.module_tensor) = type_and_tensor(torch);
    out.push_back(std::move(mapping));
    return {};
  };
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return add(text);
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS)
    return fail(invalid(path, "a value must be a type or a list of types"));
  for (const simdjson::dom::element each : list) {
    if (each.get(text) != simdjson::SUCCESS)
      return fail(invalid(path, "a value must be a type or a list of types"));
    if (auto added = add(text); !added) return added;
  }
  return {};
}

std::string_view without_zero(std::string_view name) {
  return name.ends_with("_0") ? name.substr(0, name.size() - 2) : name;
}

}  // namespace

bool is_tensor_named(std::string_view tensor, std::string_view name) {
  // Newer versions of the library add words: outtensor0_output.
  if (name.find("tensor") != std::string_view::npos && tensor.size() > name.size() &&
      tensor.starts_with(name))
    return tensor[name.size()] == '_';
  return without_zero(tensor) == without_zero(name);
}

Result<std::vector<TypeMapping>> read_op_mapping(const std::string& given) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(given, ignored);
  const std::string path = is_folder ? given + "/" + std::string(kMappingFile) : given;
  if (is_folder && !fs::exists(path, ignored))
    return fail(Error(ErrorCode::kNotFound, given)
                << "holds no " << kMappingFile << "; name the file itself with -mf");
  if (!fs::exists(path, ignored))
    return fail(Error(ErrorCode::kNotFound, path)
                << "no such mapping file; check the path given to -mf");
  const auto text = read_text(path, kMaxMappingBytes);
  if (!text) return fail(text.error());
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(*text).get(root) != simdjson::SUCCESS)
    return fail(invalid(path, "it is not JSON"));
  std::vector<TypeMapping> out;
  simdjson::dom::object object;
  simdjson::dom::array list;
  if (root.get(object) == simdjson::SUCCESS) {
    for (const auto [key, value] : object)
      if (auto added = add_entry(path, key, value, out); !added) return fail(added.error());
  } else if (root.get(list) == simdjson::SUCCESS) {
    for (const simdjson::dom::element each : list)
      if (auto added = add_record(path, each, out); !added) return fail(added.error());
  } else {
    return fail(invalid(path, "it must be an object or a list"));
  }
  if (out.empty()) return fail(invalid(path, "it names no types"));
  return out;
}

}  // namespace ait::match
