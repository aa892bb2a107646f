#include "graph/operation_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/mapped_file.h"
#include "record/dump_names.h"

namespace ait::graph {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlugin = "PluginOperation";

// More than any tensor has; a row beyond it is damaged.
constexpr size_t kMaxDimensions = 64;

// Names that ATB prints, those of its older versions (ACL_FLOAT16) without their prefix, and
// numpy's.
constexpr std::array<std::pair<std::string_view, int32_t>, 24> kElementTypes = {{
    {"float", 1},        {"float32", 1}, {"uint8", 2},     {"int8", 3},
    {"uint16", 4},       {"int16", 5},   {"int32", 6},     {"int64", 7},
    {"string", 8},       {"bool", 9},    {"float16", 10},  {"double", 11},
    {"float64", 11},     {"uint32", 12}, {"uint64", 13},   {"complex64", 14},
    {"complex128", 15},  {"bf16", 16},   {"bfloat16", 16}, {"float8_e4m3fn", 17},
    {"float8_e5m2", 19}, {"int4", 22},   {"half", 10},     {"fp16", 10},
}};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || bad != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

// Where the wanted columns are, by the names in the first line.
struct Columns {
  size_t count = 0;
  size_t name = 0;
  size_t param = 0;
  size_t input_count = 0;
  size_t input_types = 0;
  size_t input_shapes = 0;
  size_t output_count = 0;
  size_t output_types = 0;
  size_t output_shapes = 0;
};

std::optional<Columns> find_columns(std::string_view header) {
  const auto titles = split(header, '|');
  Columns columns;
  columns.count = titles.size();
  for (const auto& [title, place] :
       {std::pair{"OpName", &columns.name}, std::pair{"OpParam", &columns.param},
        std::pair{"InNum", &columns.input_count}, std::pair{"InDType", &columns.input_types},
        std::pair{"InShape", &columns.input_shapes}, std::pair{"OutNum", &columns.output_count},
        std::pair{"OutDType", &columns.output_types},
        std::pair{"OutShape", &columns.output_shapes}}) {
    const auto found = std::find(titles.begin(), titles.end(), title);
    if (found == titles.end()) return std::nullopt;
    *place = static_cast<size_t>(found - titles.begin());
  }
  return columns;
}

std::optional<std::vector<TensorType>> read_tensors(std::string_view count, std::string_view types,
                                                    std::string_view shapes) {
  const auto wanted = whole_number<int64_t>(count);
  if (!wanted) return std::nullopt;
  std::vector<TensorType> tensors;
  if (*wanted == 0) return tensors;
  const auto type_list = split(types, ';');
  const auto shape_list = split(shapes, ';');
  if (type_list.size() != static_cast<uint64_t>(*wanted) || shape_list.size() != type_list.size())
    return std::nullopt;
  for (size_t i = 0; i < type_list.size(); ++i) {
    TensorType& tensor = tensors.emplace_back();
    tensor.element_type = onnx_element_type(type_list[i]);
    if (shape_list[i].empty()) continue;  // a scalar
    for (const std::string_view text : split(shape_list[i], ',')) {
      const auto dim = whole_number<int64_t>(text);
      if (!dim || tensor.dims.size() == kMaxDimensions) return std::nullopt;
      tensor.dims.push_back(*dim);
    }
  }
  return tensors;
}

}  // namespace

int32_t onnx_element_type(std::string_view atb_name) {
  std::string name;
  for (const char c : atb_name)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name.starts_with("acl_")) name.erase(0, 4);
  for (const auto& [known, type] : kElementTypes)
    if (name == known) return type;
  return 0;
}

Result<ShapeTable> ShapeTable::parse(std::string_view text) {
  const auto next_line = [&] {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  };
  const auto columns = find_columns(next_line());
  if (!columns)
    return fail(Error(ErrorCode::kCorrupt, {}, 0)
                << "the first line does not name the columns of a table of operations (OpName, "
                   "InDType, InShape, …)");
  ShapeTable table;
  while (!text.empty()) {
    const auto cells = split(next_line(), '|');
    if (cells.size() < columns->count) continue;
    // A '|' too many can only be inside the parameters, which are free text.
    const size_t extra = cells.size() - columns->count;
    const auto cell = [&](size_t column) {
      return cells[column > columns->param ? column + extra : column];
    };
    auto inputs = read_tensors(cell(columns->input_count), cell(columns->input_types),
                               cell(columns->input_shapes));
    auto outputs = read_tensors(cell(columns->output_count), cell(columns->output_types),
                                cell(columns->output_shapes));
    if (!inputs || !outputs) continue;
    Node named;
    named.name = cell(columns->name);
    table.names_.try_emplace(ids_of(named), named.name);
    table.rows_.try_emplace(named.name, Row{std::move(*inputs), std::move(*outputs)});
  }
  return table;
}

Result<ShapeTable> ShapeTable::read(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto bytes = (*file)->bytes();
  auto table = parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!table) return fail(table.error().set_path(path));
  return table;
}

const ShapeTable::Row* ShapeTable::find(const Node& node) const {
  auto row = rows_.find(node.name);
  if (row == rows_.end() && node.type == kPlugin)
    if (const auto name = names_.find(ids_of(node)); name != names_.end())
      row = rows_.find(name->second);
  if (row == rows_.end() || row->second.inputs.size() != node.inputs.size() ||
      row->second.outputs.size() != node.outputs.size())
    return nullptr;
  return &row->second;
}

std::optional<std::string> find_operation_table(const std::string& json_path) {
  std::error_code bad;
  const fs::path folder = fs::absolute(json_path, bad).parent_path();
  const fs::path tables =
      folder.parent_path().parent_path() / record::kOperationTablesFolder / folder.filename();
  std::optional<std::pair<uint64_t, std::string>> first;
  for (fs::directory_iterator entry(tables, bad), end; !bad && entry != end; entry.increment(bad)) {
    const std::string name = entry->path().filename().native();
    constexpr std::string_view kStart = record::kOperationTableStem;
    constexpr std::string_view kEnd = ".csv";
    if (!name.starts_with(kStart) || !name.ends_with(kEnd) ||
        name.size() < kStart.size() + kEnd.size())
      continue;
    const auto round = whole_number<uint64_t>(
        std::string_view(name).substr(kStart.size(), name.size() - kStart.size() - kEnd.size()));
    if (round && (!first || *round < first->first)) first = {*round, entry->path().native()};
  }
  if (!first) return std::nullopt;
  return first->second;
}

}  // namespace ait::graph
