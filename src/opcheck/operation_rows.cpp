#include "opcheck/operation_rows.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text_file.h"
#include "golden/golden.h"
#include "opcheck/ids.h"

namespace ait::opcheck {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(separator);
    out.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// "LinearOperation_3_1" is LinearOperation and {3, 1}; nothing where it is not of that form.
std::optional<std::pair<std::string_view, std::vector<uint64_t>>> name_and_ids(
    std::string_view text) {
  const size_t end = text.find('_');
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  auto ids = parse_ids(text.substr(end + 1));
  if (!ids) return std::nullopt;
  return std::pair(text.substr(0, end), std::move(*ids));
}

// The columns that are read; the others may be there or not.
struct Columns {
  std::optional<size_t> name, type, param, output_types, input_files, output_files, input_shapes,
      output_shapes;
};

Columns find_columns(std::string_view header) {
  Columns out;
  const auto names = split(header, '|');
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "OpName") out.name = i;
    if (names[i] == "OpType") out.type = i;
    if (names[i] == "OpParam") out.param = i;
    if (names[i] == "OutDType") out.output_types = i;
    if (names[i] == "InTensorFile") out.input_files = i;
    if (names[i] == "OutTensorFile") out.output_files = i;
    if (names[i] == "InShape") out.input_shapes = i;
    if (names[i] == "OutShape") out.output_shapes = i;
  }
  return out;
}

std::string_view cell(const std::vector<std::string_view>& cells, std::optional<size_t> column) {
  return column && *column < cells.size() ? cells[*column] : std::string_view();
}

std::vector<std::string> list(std::string_view text) {
  std::vector<std::string> out;
  if (text.empty()) return out;
  for (const std::string_view each : split(text, ';')) out.emplace_back(each);
  return out;
}

OperationRow row_of(const std::vector<std::string_view>& cells, const Columns& columns) {
  OperationRow row;
  auto name = name_and_ids(cell(cells, columns.name));
  if (!name) {
    row.type = printable(cell(cells, columns.name));
    row.problem = "the OpName is not {type}_{id}_{id}…";
    return row;
  }
  const std::string_view type = cell(cells, columns.type);
  row.type = printable(type.empty() ? name->first : type);
  row.ids = std::move(name->second);
  const std::string_view param = cell(cells, columns.param);
  if (param.size() > kMaxParamBytes) {
    row.problem = "the OpParam has " + std::to_string(param.size()) +
                  " bytes, which are not the parameters of an operation";
    return row;
  }
  row.param = param;
  row.input_files = list(cell(cells, columns.input_files));
  row.output_files = list(cell(cells, columns.output_files));
  row.input_shapes = list(cell(cells, columns.input_shapes));
  row.output_shapes = list(cell(cells, columns.output_shapes));
  if (std::max({row.input_files.size(), row.output_files.size(), row.input_shapes.size(),
                row.output_shapes.size()}) > kMaxTensors)
    row.problem = "it names more than " + std::to_string(kMaxTensors) + " tensors";
  // What writes to its inputs only has no types of outputs.
  else if (cell(cells, columns.output_types).empty() &&
           golden::changed_inputs(row.type, row.param).empty())
    row.problem = "the OutDType is empty";
  return row;
}

}  // namespace

Result<std::vector<OperationRow>> parse_operation_rows(std::string_view text,
                                                       const std::string& path) {
  const Columns columns = find_columns(text.substr(0, text.find('\n')));
  if (!columns.name || !columns.output_types)
    return fail(Error(ErrorCode::kCorrupt, path)
                << "Cannot find enough info in csv file: it lacks the column OpName or OutDType; "
                   "give -c an operation_tensors_{n}.csv of `ait llm dump --type op`");
  std::vector<OperationRow> out;
  std::map<std::vector<uint64_t>, size_t> places;
  size_t line_number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (++line_number == 1 || trimmed(line).empty()) continue;
    const auto cells = split(line, '|');
    OperationRow row = row_of(cells, columns);
    if (!row.problem.empty())
      row.problem =
          (Error(ErrorCode::kCorrupt, path) << "line " << line_number << ": " << row.problem)
              .text();
    if (row.ids.empty()) {
      out.push_back(std::move(row));
      continue;
    }
    const auto [place, is_new] = places.try_emplace(row.ids, out.size());
    if (is_new)
      out.push_back(std::move(row));
    else
      out[place->second] = std::move(row);
  }
  return out;
}

Result<std::vector<OperationRow>> read_operation_rows(const std::string& path) {
  const auto text = read_text(path, kMaxBytes);
  if (!text) return fail(text.error());
  return parse_operation_rows(*text, path);
}

}  // namespace ait::opcheck
