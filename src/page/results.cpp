#include "page/results.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/log.h"
#include "base/text_file.h"
#include "page/csv_reader.h"
#include "page/manifests.h"

namespace ait::page {
namespace {

using report::Cell;
using report::JsonArray;
using report::JsonObject;

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr size_t kMaxManifestBytes = size_t{8} << 20;
constexpr std::string_view kOverflow = "Overflow detected! Operator name: ";

struct KnownHeader {
  std::string_view kind;
  std::string_view start;  // of the file
};
constexpr auto kHeaders = std::to_array<KnownHeader>({
    {"opcheck", "op_id,op_name,op_param,tensor_path,"},
    {"api_check", "API name,Forward Test Success,"},
    {"api_overflow", "API name,Verdict,"},
    {"api_details", "Npu Name,Bench Dtype,"},
    {"errcheck", kOverflow},
});

// A number as a report writes it; nothing for other texts.
std::optional<double> number_of(std::string_view text) {
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_nothing(std::string_view text) {
  return text.empty() || text == "NaN" || text == "nan" || text == "N/A";
}

void fill(Table& table, const CsvRows& rows) {
  const size_t width = rows.front().size();
  std::vector<bool> numeric(width, true);
  for (size_t i = 1; i < rows.size(); ++i)
    for (size_t k = 0; k < width && k < rows[i].size(); ++k)
      if (!is_nothing(rows[i][k]) && !number_of(rows[i][k])) numeric[k] = false;
  for (const std::string& name : rows.front()) table.add_column(name, true);
  for (size_t i = 1; i < rows.size(); ++i) {
    for (size_t k = 0; k < width && k < rows[i].size(); ++k) {
      const std::string& text = rows[i][k];
      if (!numeric[k])
        table.set(k, Cell(text));
      else if (!is_nothing(text))
        table.set(k, Cell(*number_of(text)));
    }
    table.end_row();
  }
}

// A line for each operator, with how often it was reported.
void fill_overflows(Table& table, std::string_view text) {
  std::vector<std::pair<std::string, uint64_t>> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(kOverflow)) continue;
    line.remove_prefix(kOverflow.size());
    const auto known = std::find_if(found.begin(), found.end(),
                                    [&](const auto& each) { return each.first == line; });
    if (known == found.end())
      found.emplace_back(std::string(line), 1);
    else
      ++known->second;
  }
  const size_t name = table.add_column("operator");
  const size_t count = table.add_column("reports");
  for (const auto& [operation, reports] : found) {
    table.set(name, Cell(operation));
    table.set(count, Cell(reports));
    table.end_row();
  }
}

}  // namespace

std::optional<std::string> result_kind(const std::string& path) {
  std::array<char, 128> bytes{};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  const std::string_view start(bytes.data(), static_cast<size_t>(file.gcount()));
  for (const KnownHeader& header : kHeaders)
    if (start.starts_with(header.start)) return std::string(header.kind);
  if (std::filesystem::path(path).filename() == "manifest.json" && start.starts_with('{'))
    return "dump";
  return std::nullopt;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

Result<Page> result_page(const std::string& path, const std::string& version) {
  const auto kind = result_kind(path);
  if (!kind)
    return fail(
        Error(ErrorCode::kUnsupported, path)
        << "is not a result that a page can be made of; give a report of ait llm compare, the "
           "csv of ait llm opcheck or ait api check, or the manifest.json of a dump");
  auto text = read_text(path, *kind == "dump" ? kMaxManifestBytes : kMaxBytes);
  if (!text) return fail(text.error());
  Page page;
  JsonArray manifests;
  if (*kind == "dump") {
    JsonObject manifest;
    manifest.set("side", "my").set("path", path).set("text", *text);
    manifests.emplace_back(std::move(manifest));
  } else if (*kind == "errcheck") {
    fill_overflows(page.table, *text);
  } else {
    auto rows = read_csv(*text);
    if (!rows) return fail(Error(rows.error()).set_path(path));
    fill(page.table, *rows);
  }
  page.about.set("kind", *kind)
      .set("version", version)
      .set("made", now_text())
      .set("report", path)
      .set("rows", uint64_t{page.table.rows()})
      .set("manifests", std::move(manifests));
  return page;
}

}  // namespace ait::page
