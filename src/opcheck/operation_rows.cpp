#include "opcheck/operation_rows.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text_file.h"
#include "golden/golden.h"

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
std::optional<std::pair<std::string, std::vector<uint64_t>>> name_and_ids(std::string_view text) {
  const auto parts = split(text, '_');
  if (parts.size() < 2 || parts[0].empty()) return std::nullopt;
  std::vector<uint64_t> ids;
  for (size_t i = 1; i < parts.size(); ++i) {
    uint64_t id = 0;
    const char* end = parts[i].data() + parts[i].size();
    const auto [stop, bad] = std::from_chars(parts[i].data(), end, id);
    if (bad != std::errc() || stop != end) return std::nullopt;
    ids.push_back(id);
  }
  return std::pair(std::string(parts[0]), std::move(ids));
}

// The columns that are read; the others may be there or not.
struct Columns {
  std::optional<size_t> name, type, param, output_types, input_files, output_files;
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

}  // namespace

Result<OperationRows> parse_operation_rows(std::string_view text, const std::string& path) {
  const Columns columns = find_columns(text.substr(0, text.find('\n')));
  if (!columns.name || !columns.output_types)
    return fail(Error(ErrorCode::kCorrupt, path)
                << "Cannot find enough info in csv file: it lacks the column OpName or OutDType; "
                   "give -c an operation_tensors_{n}.csv of `ait llm dump --type op`");
  OperationRows out;
  std::map<std::vector<uint64_t>, size_t> places;
  for (uint64_t offset = 0; offset < text.size();) {
    const std::string_view line = text.substr(offset, text.find('\n', offset) - offset);
    const uint64_t start = offset;
    offset += line.size() + 1;
    if (start == 0 || trimmed(line).empty()) continue;
    const auto cells = split(line, '|');
    const auto name = name_and_ids(cell(cells, columns.name));
    if (!name) {
      out.problems.push_back(
          Error(ErrorCode::kCorrupt, path, start)
          << "holds a row whose OpName is not {type}_{id}_{id}…; it is left out");
      continue;
    }
    OperationRow row;
    row.type =
        cell(cells, columns.type).empty() ? name->first : std::string(cell(cells, columns.type));
    row.ids = name->second;
    row.param = cell(cells, columns.param);
    row.input_files = list(cell(cells, columns.input_files));
    row.output_files = list(cell(cells, columns.output_files));
    // What writes to its inputs only has no types of outputs.
    if (cell(cells, columns.output_types).empty() &&
        golden::changed_inputs(row.type, row.param).empty()) {
      out.problems.push_back(Error(ErrorCode::kCorrupt, path, start)
                             << "holds a row without OutDType (" << printable(row.type)
                             << "); it is left out");
      continue;
    }
    const auto [place, is_new] = places.try_emplace(row.ids, out.rows.size());
    if (is_new)
      out.rows.push_back(std::move(row));
    else
      out.rows[place->second] = std::move(row);
  }
  return out;
}

Result<OperationRows> read_operation_rows(const std::string& path) {
  const auto text = read_text(path, kMaxBytes);
  if (!text) return fail(text.error());
  return parse_operation_rows(*text, path);
}

}  // namespace ait::opcheck
