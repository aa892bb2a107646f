#include "formats/statistics_csv.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/csv_line.h"

namespace ait::formats::statistics_csv {
namespace {

constexpr std::string_view kHeader =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm";

enum Cell : uint8_t {
  kInputOutput = 2,
  kIndex = 3,
  kDataType = 4,
  kShape = 5,
  kMax = 6,
  kMin = 7,
  kMean = 8,
  kNorm = 9,
};

// What comes after a line's first 64 cells is not looked at.
constexpr size_t kMostCells = 64;

// Where the columns after the tenth are, which tables have or not.
struct Columns {
  static constexpr size_t kNone = kMostCells;
  size_t file = kNone;
  size_t nan = kNone;
  size_t inf = kNone;
  size_t sketch = kNone;

  explicit Columns(const CsvLine& header) {
    const auto find = [&](std::string_view name) {
      const auto from =
          header.cells.begin() + std::min<ptrdiff_t>(kNorm + 1, std::ssize(header.cells));
      const auto found = std::find(from, header.cells.end(), name);
      return found == header.cells.end() ? kNone
                                         : static_cast<size_t>(found - header.cells.begin());
    };
    // Older tables do not name it, and have it all the same where a later tool appended.
    file = header.count == kNorm + 1 ? kNorm + 1 : find("File");
    nan = find("NaN");
    inf = find("Inf");
    sketch = find("Sketch");
  }
};

// Empty where the line has no such cell.
std::string_view cell(const CsvLine& line, size_t at) {
  return at < line.cells.size() ? std::string_view(line.cells[at]) : std::string_view();
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_blank(const CsvLine& line) { return line.count == 1 && line.cells[0].empty(); }

// "(1, 7, 64)", "(3,)", "()"
std::optional<Shape> parse_shape(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  Shape shape;
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) break;
    int64_t size = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (bad != std::errc() || size < 0 || shape.size() == kMaxRank) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && text.front() != ',') return std::nullopt;
    shape.push_back(size);
  }
  if (!count_elements(shape)) return std::nullopt;
  return shape;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t count = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return count;
}

// Empty cells of an empty tensor, and words of a tool that could not compute one, are none.
std::optional<Description::Statistics> parse_statistics(const CsvLine& from,
                                                        const Columns& columns) {
  const auto maximum = parse_number(cell(from, kMax));
  const auto minimum = parse_number(cell(from, kMin));
  const auto mean = parse_number(cell(from, kMean));
  const auto norm = parse_number(cell(from, kNorm));
  if (!maximum || !minimum || !mean || !norm) return std::nullopt;
  Description::Statistics out{*maximum, *minimum, *mean, *norm, 0};
  out.sketch = cell(from, columns.sketch);
  out.nan = parse_count(cell(from, columns.nan));
  out.inf = parse_count(cell(from, columns.inf));
  return out;
}

// Type and shape; nothing where the line has none that make sense.
std::optional<Description> parse_description(const CsvLine& from) {
  if (from.count <= kNorm) return std::nullopt;
  const auto dtype = parse_dtype(cell(from, kDataType));
  auto shape = parse_shape(cell(from, kShape));
  if (!dtype || !shape) return std::nullopt;
  // Of an empty tensor this is all there is.
  const bool is_empty = count_elements(*shape) == 0;
  return Description{*dtype, std::move(*shape), is_empty, std::nullopt};
}

struct Line {
  std::string name;
  bool is_named = true;  // by the file
  std::string_view text;
};

std::string default_name(const CsvLine& from) {
  return (cell(from, kInputOutput) == "Input" ? "input_" : "output_") +
         std::string(cell(from, kIndex));
}

// Older tools do not say how the file of a tensor would be called. A module puts out one tensor,
// which they call "output", or several, numbered: where there is only number 0, it is the former.
void rename_only_output(std::vector<Line>& lines) {
  Line* only = nullptr;
  for (Line& line : lines) {
    if (line.name.starts_with("input")) continue;
    if (only != nullptr || line.is_named || line.name != "output_0") return;
    only = &line;
  }
  if (only != nullptr) only->name = "output";
}

class Table : public TensorFile {
 public:
  Table(std::shared_ptr<const MappedFile> file, const Columns& columns, std::vector<Line> lines,
        std::string note)
      : file_(std::move(file)),
        columns_(columns),
        lines_(std::move(lines)),
        note_(std::move(note)) {}

  std::string_view format() const override { return "statistics"; }
  size_t size() const override { return lines_.size(); }
  std::string name(size_t index) const override { return lines_[index].name; }
  Result<Tensor> load(size_t index) const override {
    const auto description = describe(index);
    if (!description) return fail(description.error());
    if (description->has_data)
      return Tensor::contiguous(file_, {}, description->dtype, description->shape);
    return fail(Error(ErrorCode::kUnsupported)
                << "tensor has no data. The file only holds statistics; record again with "
                   "dump_statistics_mode 0 or 2");
  }
  // Reads the line again: a table may have more of them than should be in memory.
  Result<Description> describe(size_t index) const override {
    std::string_view text = lines_[index].text;
    const CsvLine line = take_csv_line(text, kMostCells);
    auto out = parse_description(line);
    if (!out)
      return fail(Error(ErrorCode::kCorrupt, file_->path())
                  << "was changed while it was read; read it again when its writer has ended");
    if (!out->has_data) out->statistics = parse_statistics(line, columns_);
    return std::move(*out);
  }
  std::string note() const override { return note_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  Columns columns_;
  std::vector<Line> lines_;
  std::string note_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes);
  return text.starts_with(kHeader) &&
         (text.size() == kHeader.size() ||
          std::string_view(",\r\n").find(text[kHeader.size()]) != std::string_view::npos);
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  if (file->bytes().size() > kMaxBytes)
    return fail(Error(ErrorCode::kUnsupported, file->path())
                << "is larger than a table of statistics may be (1 GiB)");
  std::string_view text = text_of(file->bytes());
  const Columns columns(take_csv_line(text, kMostCells));
  // Sketches are long, and are not needed here.
  const size_t cells =
      std::max<size_t>(kNorm, columns.file == Columns::kNone ? 0 : columns.file) + 1;
  std::vector<Line> lines;
  std::unordered_set<std::string> seen;
  size_t left_out = 0;
  while (!text.empty()) {
    const std::string_view from_here = text;
    const CsvLine line = take_csv_line(text, cells);
    if (is_blank(line)) continue;
    std::string name(cell(line, columns.file));
    const bool is_named = !name.empty();
    if (!is_named) name = default_name(line);
    // A module that was called again appended: the first call is the one that is compared.
    if (!parse_description(line) || !seen.insert(name).second) {
      ++left_out;
    } else if (lines.size() == kMaxTensors) {
      return fail(Error(ErrorCode::kUnsupported, file->path())
                  << "holds statistics of more than " << kMaxTensors
                  << " tensors; no round has as many");
    } else {
      lines.push_back(
          {std::move(name), is_named, from_here.substr(0, from_here.size() - text.size())});
    }
  }
  if (lines.empty() && left_out > 0)
    return fail(Error(ErrorCode::kCorrupt, file->path())
                << "none of its " << left_out
                << " lines describes a tensor; expected a type, a shape and four numbers in each");
  rename_only_output(lines);
  std::string note;
  if (left_out > 0)
    note = std::to_string(left_out) + " lines were ignored: they do not describe a further tensor";
  return std::make_unique<Table>(std::move(file), columns, std::move(lines), std::move(note));
}

}  // namespace ait::formats::statistics_csv
