#include "formats/atb_statistics.h"

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/csv_line.h"

namespace ait::formats::atb_statistics {
namespace {

constexpr std::string_view kHeader =
    "Device and PID,Execution Count,Op Name,Op Type,Op "
    "Id,Input/Output,Index,Dtype,Format,Shape,Max,"
    "Min,Mean,Norm,Tensor Path";

enum Cell : uint8_t {
  kName = 2,
  kId = 4,
  kDirection = 5,
  kIndex = 6,
  kType = 7,
  kFormat = 8,
  kShape = 9,
  kMax = 10,
  kMin = 11,
  kMean = 12,
  kNorm = 13,
  kCells = 15,
};

// Numbers are written with six decimals.
constexpr double kDecimalRounding = 0.5e-6;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "2x64"; nothing for a scalar
std::optional<Shape> shape_of(std::string_view text) {
  Shape shape;
  while (!text.empty()) {
    int64_t size = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (bad != std::errc() || size < 0 || shape.size() == kMaxRank) return std::nullopt;
    shape.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != 'x' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!count_elements(shape)) return std::nullopt;
  return shape;
}

// Takes what stands before the next separator off the front.
std::string_view take_part(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

// "13_Layer/6_Linear" of "Layer/Linear" and "13_6"; empty where they do not fit each other.
std::string operation_of(std::string_view names, std::string_view ids) {
  std::string out;
  while (!names.empty() && !ids.empty()) {
    const std::string_view id = take_part(ids, '_');
    const std::string_view name = take_part(names, '/');
    if (!is_number(id) || name.empty() || name == "." || name == "..") return {};
    out += (out.empty() ? "" : "/") + std::string(id) + "_" + std::string(name);
  }
  return names.empty() && ids.empty() ? out : std::string();
}

struct Entry {
  std::string name;
  Description description;
};

std::optional<Entry> parse(const CsvLine& line) {
  if (line.count != kCells) return std::nullopt;
  const std::string operation = operation_of(line.cells[kName], line.cells[kId]);
  const bool is_input = line.cells[kDirection] == "input";
  if (operation.empty() || (!is_input && line.cells[kDirection] != "output") ||
      line.cells[kIndex].find('/') != std::string::npos || line.cells[kIndex].empty())
    return std::nullopt;
  const auto dtype = parse_dtype(line.cells[kType]);
  auto shape = shape_of(line.cells[kShape]);
  if (!dtype || !shape) return std::nullopt;
  const bool is_empty = count_elements(*shape) == 0;
  Entry entry{
      operation + (is_input ? "/before/intensor" : "/after/outtensor") + line.cells[kIndex],
      {*dtype, std::move(*shape), is_empty, std::nullopt, line.cells[kFormat] == "fractal_nz"}};
  const auto maximum = number_of(line.cells[kMax]);
  const auto minimum = number_of(line.cells[kMin]);
  const auto mean = number_of(line.cells[kMean]);
  const auto norm = number_of(line.cells[kNorm]);
  if (!is_empty && maximum && minimum && mean && norm)
    entry.description.statistics =
        Description::Statistics{*maximum, *minimum, *mean, *norm, kDecimalRounding};
  return entry;
}

class Table : public TensorFile {
 public:
  Table(std::shared_ptr<const MappedFile> file, std::vector<Entry> entries, std::string note)
      : file_(std::move(file)), entries_(std::move(entries)), note_(std::move(note)) {}

  std::string_view format() const override { return "statistic.csv"; }
  size_t size() const override { return entries_.size(); }
  std::string name(size_t index) const override { return entries_[index].name; }
  Result<Tensor> load(size_t index) const override {
    const Description& description = entries_[index].description;
    if (description.has_data)
      return Tensor::contiguous(file_, {}, description.dtype, description.shape);
    return fail(Error(ErrorCode::kUnsupported)
                << "tensor has no data. The file only holds statistics; record again with "
                   "\"task\": \"tensor\"");
  }
  Result<Description> describe(size_t index) const override { return entries_[index].description; }
  std::string note() const override { return note_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<Entry> entries_;
  std::string note_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) { return text_of(bytes).starts_with(kHeader); }

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  if (file->bytes().size() > kMaxBytes)
    return fail(Error(ErrorCode::kUnsupported, file->path())
                << "is larger than the statistics of a round may be (256 MiB)");
  std::string_view text = text_of(file->bytes());
  take_csv_line(text, 1);  // the header
  std::vector<Entry> entries;
  std::set<std::string> seen;
  size_t left_out = 0;
  while (!text.empty()) {
    const CsvLine line = take_csv_line(text, kCells);
    if (line.count == 1 && line.cells[0].empty()) continue;
    auto entry = parse(line);
    if (entry && seen.insert(entry->name).second)
      entries.push_back(std::move(*entry));
    else
      ++left_out;
  }
  if (entries.empty() && left_out > 0)
    return fail(Error(ErrorCode::kCorrupt, file->path())
                << "none of its " << left_out
                << " lines describes a tensor; expected an operation, a type and a shape in each");
  std::string note;
  if (left_out > 0)
    note = std::to_string(left_out) + " lines were ignored: they do not describe a further tensor";
  return std::make_unique<Table>(std::move(file), std::move(entries), std::move(note));
}

}  // namespace ait::formats::atb_statistics
