#include "formats/statistics_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ait::formats::statistics_csv {
namespace {

constexpr std::string_view kHeader =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm";

enum Cell : size_t {
  kInputOutput = 2,
  kIndex = 3,
  kDataType = 4,
  kShape = 5,
  kMax = 6,
  kMin = 7,
  kMean = 8,
  kNorm = 9,
  kFile = 10,
};

struct Line {
  std::string name;
  Description description;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes one line off the front of `rest` and gives its cells. A quoted cell may hold line ends.
std::vector<std::string> take_line(std::string_view& rest) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (quoted) {
      if (c != '"') {
        cells.back() += c;
      } else if (at + 1 < rest.size() && rest[at + 1] == '"') {
        cells.back() += rest[++at];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cells.back() += c;
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

double parse_number(std::string_view text) {
  double value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  return bad == std::errc() && end == text.data() + text.size() && !text.empty()
             ? value
             : std::numeric_limits<double>::quiet_NaN();
}

std::optional<Line> parse_line(const std::vector<std::string>& cells) {
  if (cells.size() <= kNorm) return std::nullopt;
  const auto dtype = parse_dtype(cells[kDataType]);
  auto shape = parse_shape(cells[kShape]);
  if (!dtype || !shape) return std::nullopt;
  Line line{{}, {*dtype, std::move(*shape), false, std::nullopt}};
  line.name = cells.size() > kFile && !cells[kFile].empty()
                  ? cells[kFile]
                  : (cells[kInputOutput] == "Input" ? "input_" : "output_") + cells[kIndex];
  if (!cells[kMax].empty())
    line.description.statistics = {parse_number(cells[kMax]), parse_number(cells[kMin]),
                                   parse_number(cells[kMean]), parse_number(cells[kNorm])};
  return line;
}

class Table : public TensorFile {
 public:
  explicit Table(std::string_view text) {
    take_line(text);  // the header
    std::set<std::string> seen;
    size_t left_out = 0;
    while (!text.empty()) {
      const auto cells = take_line(text);
      if (cells.size() == 1 && cells[0].empty()) continue;
      auto line = parse_line(cells);
      // A module that was called again appended: the first call is the one that is compared.
      if (line && seen.insert(line->name).second) {
        lines_.push_back(std::move(*line));
      } else {
        ++left_out;
      }
    }
    if (left_out > 0)
      note_ = std::to_string(left_out) + " lines are no statistics of another tensor";
  }

  std::string_view format() const override { return "statistics"; }
  size_t size() const override { return lines_.size(); }
  std::string name(size_t index) const override { return lines_[index].name; }
  Result<Tensor> load(size_t) const override {
    return fail(Error(ErrorCode::kUnsupported)
                << "tensor has no data. The file only holds statistics; record again with "
                   "dump_statistics_mode 0 or 2");
  }
  Result<Description> describe(size_t index) const override { return lines_[index].description; }
  std::string note() const override { return note_; }

 private:
  std::vector<Line> lines_;
  std::string note_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) { return text_of(bytes).starts_with(kHeader); }

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  if (file->bytes().size() > kMaxBytes)
    return fail(Error(ErrorCode::kUnsupported, file->path())
                << "is larger than a table of statistics may be (32 MiB)");
  return std::make_unique<Table>(text_of(file->bytes()));
}

}  // namespace ait::formats::statistics_csv
