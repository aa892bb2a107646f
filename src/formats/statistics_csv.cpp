#include "formats/statistics_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  kFile = 10,
  kCells = 11,
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The cells of a line that are known; `count` is how many there are in all.
struct Cells {
  std::array<std::string, kCells> texts;
  size_t count = 1;

  void add(char c) {
    if (count <= kCells) texts[count - 1] += c;
  }
  bool is_blank() const { return count == 1 && texts[0].empty(); }
};

// Takes one line off the front of `rest`. A quoted cell may hold line ends.
Cells take_line(std::string_view& rest) {
  Cells cells;
  bool quoted = false;
  size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (quoted) {
      if (c != '"') {
        cells.add(c);
      } else if (at + 1 < rest.size() && rest[at + 1] == '"') {
        cells.add(rest[++at]);
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      ++cells.count;
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.add(c);
    }
  }
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return cells;
}

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

// Empty cells of an empty tensor, and words of a tool that could not compute one, are none.
std::optional<Description::Statistics> parse_statistics(const Cells& cells) {
  const auto maximum = parse_number(cells.texts[kMax]);
  const auto minimum = parse_number(cells.texts[kMin]);
  const auto mean = parse_number(cells.texts[kMean]);
  const auto norm = parse_number(cells.texts[kNorm]);
  if (!maximum || !minimum || !mean || !norm) return std::nullopt;
  return Description::Statistics{*maximum, *minimum, *mean, *norm};
}

struct Line {
  std::string name;
  bool is_named = true;  // by the file
  Description description;
};

std::optional<Line> parse_line(const Cells& cells) {
  if (cells.count <= kNorm) return std::nullopt;
  const auto dtype = parse_dtype(cells.texts[kDataType]);
  auto shape = parse_shape(cells.texts[kShape]);
  if (!dtype || !shape) return std::nullopt;
  // Of an empty tensor this is all there is.
  const bool is_empty = count_elements(*shape) == 0;
  Line line{cells.texts[kFile], true, {*dtype, std::move(*shape), is_empty, std::nullopt}};
  if (line.name.empty()) {
    line.is_named = false;
    line.name = (cells.texts[kInputOutput] == "Input" ? "input_" : "output_") + cells.texts[kIndex];
  }
  if (!is_empty) line.description.statistics = parse_statistics(cells);
  return line;
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
  Table(std::shared_ptr<const MappedFile> file, std::vector<Line> lines, std::string note)
      : file_(std::move(file)), lines_(std::move(lines)), note_(std::move(note)) {}

  std::string_view format() const override { return "statistics"; }
  size_t size() const override { return lines_.size(); }
  std::string name(size_t index) const override { return lines_[index].name; }
  Result<Tensor> load(size_t index) const override {
    const Description& description = lines_[index].description;
    if (description.has_data)
      return Tensor::contiguous(file_, {}, description.dtype, description.shape);
    return fail(Error(ErrorCode::kUnsupported)
                << "tensor has no data. The file only holds statistics; record again with "
                   "dump_statistics_mode 0 or 2");
  }
  Result<Description> describe(size_t index) const override { return lines_[index].description; }
  std::string note() const override { return note_; }

 private:
  std::shared_ptr<const MappedFile> file_;
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
                << "is larger than a table of statistics may be (32 MiB)");
  std::string_view text = text_of(file->bytes());
  take_line(text);  // the header
  std::vector<Line> lines;
  std::set<std::string> seen;
  size_t left_out = 0;
  while (!text.empty()) {
    const Cells cells = take_line(text);
    if (cells.is_blank()) continue;
    auto line = parse_line(cells);
    // A module that was called again appended: the first call is the one that is compared.
    if (!line || !seen.insert(line->name).second) {
      ++left_out;
    } else if (lines.size() == kMaxTensors) {
      return fail(Error(ErrorCode::kUnsupported, file->path())
                  << "holds statistics of more than " << kMaxTensors
                  << " tensors; no module has as many");
    } else {
      lines.push_back(std::move(*line));
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
  return std::make_unique<Table>(std::move(file), std::move(lines), std::move(note));
}

}  // namespace ait::formats::statistics_csv
