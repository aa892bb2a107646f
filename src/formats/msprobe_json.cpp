#include "formats/msprobe_json.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace ait::formats::msprobe_json {
namespace {

namespace ondemand = simdjson::ondemand;

// Every version writes this key before the data.
constexpr std::string_view kMark = "\"dump_data_dir\"";
constexpr size_t kMarkWithinBytes = 4096;

// Arguments nest a few levels.
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxPlaceBytes = 1024;

// Mean and norm of a narrow type are rounded to that type.
constexpr double kHalfRounding = 0x1p-11;
constexpr double kBFloat16Rounding = 0x1p-8;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view trimmed(std::string_view token) {
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())))
    token.remove_suffix(1);
  return token;
}

// Python writes NaN, Infinity and -Infinity, which are no JSON; booleans count as 0 and 1.
std::optional<double> number_of(ondemand::value value) {
  const std::string_view token = trimmed(value.raw_json_token());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (token == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (token == "Infinity") return kInfinity;
  if (token == "-Infinity") return -kInfinity;
  if (token == "true") return 1;
  if (token == "false") return 0;
  double number = 0;
  const auto [end, bad] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (bad != std::errc() || end != token.data() + token.size()) return std::nullopt;
  return number;
}

// "torch.float32", MindSpore's "Float32", numpy's "float32"
std::optional<DType> dtype_of(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return parse_dtype(lower);
}

std::optional<Shape> shape_of(ondemand::value value) {
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return std::nullopt;
  Shape shape;
  for (auto item : array) {
    int64_t size = 0;
    if (item.get_int64().get(size) != simdjson::SUCCESS || size < 0 || shape.size() == kMaxRank)
      return std::nullopt;
    shape.push_back(size);
  }
  if (!count_elements(shape)) return std::nullopt;
  return shape;
}

// The fields of a tensor or of any other single value.
struct Leaf {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
  std::optional<double> maximum, minimum, mean, norm;
  std::string_view data_name;
  std::string_view checksum;
  bool has_dtype = false;
  bool has_shape = false;

  // Values that are no tensors have neither.
  bool is_tensor() const { return has_dtype && has_shape; }

  std::optional<Description> description() const {
    if (!dtype || !shape) return std::nullopt;
    const bool is_empty = count_elements(*shape) == 0;
    Description out{*dtype, *shape, is_empty, std::nullopt};
    out.checksum = checksum;
    if (is_empty || !maximum || !minimum || !mean || !norm) return out;
    // Of a single number, msprobe writes the number itself as its norm.
    Description::Statistics& statistics =
        out.statistics.emplace(Description::Statistics{*maximum, *minimum, *mean, std::abs(*norm)});
    if (*dtype == DType::kFloat16) statistics.rounding_of_type = kHalfRounding;
    if (*dtype == DType::kBFloat16) statistics.rounding_of_type = kBFloat16Rounding;
    return out;
  }
};

class Reader {
 public:
  explicit Reader(const std::function<void(const Item&)>& visit) : visit_(visit) {}

  // The first thing that is not as it should be ends the reading.
  simdjson::error_code read(ondemand::document& document) {
    ondemand::object data;
    if (const auto bad = document["data"].get_object().get(data)) return bad;
    for (auto entry : data) {
      ondemand::object parts;
      if (const auto bad = entry.unescaped_key().get(item_.key)) return bad;
      key_ = item_.key;
      item_.key = key_;
      if (const auto bad = entry.value().get_object().get(parts)) return bad;
      for (auto part : parts) {
        std::string_view name;
        if (const auto bad = part.unescaped_key().get(name)) return bad;
        part_ = name;
        item_.part = part_;
        place_.clear();
        ondemand::value value;
        if (const auto bad = part.value().get(value)) return bad;
        if (const auto bad = visit(value, 0)) return bad;
      }
    }
    return simdjson::SUCCESS;
  }

 private:
  simdjson::error_code visit(ondemand::value value, size_t depth) {
    if (depth > kMaxDepth) return simdjson::DEPTH_ERROR;
    const std::string_view token = value.raw_json_token();
    if (token.starts_with('[')) return visit_array(value, depth);
    if (token.starts_with('{')) return visit_object(value, depth);
    return simdjson::SUCCESS;  // null, and whatever else is no tensor
  }

  simdjson::error_code visit_below(std::string_view step, ondemand::value value, size_t depth) {
    const size_t before = place_.size();
    if (before + step.size() > kMaxPlaceBytes) return simdjson::CAPACITY;
    if (before > 0) place_ += '.';
    place_ += step;
    const auto bad = visit(value, depth + 1);
    place_.resize(before);
    return bad;
  }

  simdjson::error_code visit_array(ondemand::value value, size_t depth) {
    ondemand::array array;
    if (const auto bad = value.get_array().get(array)) return bad;
    size_t index = 0;
    for (auto each : array) {
      ondemand::value item;
      if (const auto bad = each.get(item)) return bad;
      if (const auto bad = visit_below(std::to_string(index++), item, depth)) return bad;
    }
    return simdjson::SUCCESS;
  }

  // A single value begins with its type; an operation of point-to-point communication with
  // "class_type", and has a tensor inside that goes by its own place. All else holds further values.
  simdjson::error_code visit_object(ondemand::value value, size_t depth) {
    ondemand::object object;
    if (const auto bad = value.get_object().get(object)) return bad;
    enum class Kind : uint8_t { kUnknown, kLeaf, kOperation, kContainer };
    Kind kind = Kind::kUnknown;
    Leaf leaf;
    for (auto field : object) {
      std::string_view key;
      ondemand::value inner;
      if (const auto bad = field.unescaped_key().get(key)) return bad;
      if (const auto bad = field.value().get(inner)) return bad;
      if (kind == Kind::kUnknown) {
        const bool is_text = std::string_view(inner.raw_json_token()).starts_with('"');
        kind = is_text && key == "type"         ? Kind::kLeaf
               : is_text && key == "class_type" ? Kind::kOperation
                                                : Kind::kContainer;
      }
      if (kind == Kind::kLeaf) {
        take(key, inner, leaf);
      } else if (kind == Kind::kContainer) {
        const std::string step(key);
        if (const auto bad = visit_below(step, inner, depth)) return bad;
      } else if (key == "tensor") {
        if (const auto bad = visit(inner, depth + 1)) return bad;
      }
    }
    if (leaf.is_tensor()) {
      item_.place = place_;
      item_.data_name = leaf.data_name;
      item_.description = leaf.description();
      visit_(item_);
    }
    return simdjson::SUCCESS;
  }

  static void take(std::string_view key, ondemand::value value, Leaf& leaf) {
    const auto text = [&]() -> std::string_view {
      std::string_view out;
      return value.get_string().get(out) == simdjson::SUCCESS ? out : std::string_view();
    };
    if (key == "dtype") {
      leaf.has_dtype = true;
      leaf.dtype = dtype_of(text());
    } else if (key == "shape") {
      leaf.has_shape = true;
      leaf.shape = shape_of(value);
    } else if (key == "Max") {
      leaf.maximum = number_of(value);
    } else if (key == "Min") {
      leaf.minimum = number_of(value);
    } else if (key == "Mean") {
      leaf.mean = number_of(value);
    } else if (key == "Norm") {
      leaf.norm = number_of(value);
    } else if (key == "data_name") {
      leaf.data_name = text();
    } else if (key == "md5") {
      leaf.checksum = text();
    }
  }

  const std::function<void(const Item&)>& visit_;
  std::string key_;
  std::string part_;
  std::string place_;
  Item item_;
};

struct Entry {
  std::string name;
  std::string data_name;
  Description description;
};

class DumpJson : public TensorFile {
 public:
  DumpJson(std::shared_ptr<const MappedFile> file, std::vector<Entry> entries, std::string note)
      : file_(std::move(file)), entries_(std::move(entries)), note_(std::move(note)) {}

  std::string_view format() const override { return "msprobe dump.json"; }
  size_t size() const override { return entries_.size(); }
  std::string name(size_t index) const override { return entries_[index].name; }
  Result<Tensor> load(size_t index) const override {
    const Entry& entry = entries_[index];
    if (entry.description.has_data)
      return Tensor::contiguous(file_, {}, entry.description.dtype, entry.description.shape);
    Error error(ErrorCode::kUnsupported);
    error << "tensor has no data. ";
    if (entry.data_name.empty())
      error << "The file only holds statistics; record again with \"task\": \"tensor\"";
    else
      error << "Its data are in dump_tensor_data/" << printable(entry.data_name)
            << " beside this file";
    return fail(std::move(error));
  }
  Result<Description> describe(size_t index) const override { return entries_[index].description; }
  std::string note() const override { return note_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::vector<Entry> entries_;
  std::string note_;
};

}  // namespace

std::string Item::name() const {
  std::string out(key);
  out += '.';
  out += part == "input_args" ? "input" : part == "input_kwargs" ? "kwargs" : part;
  // A gradient stands in a list of one, which its file does not show.
  const bool is_gradient = key.find(".parameters_grad") != std::string_view::npos;
  if (!place.empty() && !is_gradient) (out += '.') += place;
  return out;
}

bool sniff(std::span<const std::byte> bytes) {
  const std::string_view head = text_of(bytes.first(std::min(bytes.size(), kMarkWithinBytes)));
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{' &&
         head.find(kMark) != std::string_view::npos;
}

Result<void> each_tensor(const MappedFile& file, const std::function<void(const Item&)>& visit) {
  if (file.bytes().size() > kMaxBytes)
    return fail(Error(ErrorCode::kUnsupported, file.path())
                << "is larger than a dump.json may be (3 GiB); record fewer steps or modules");
  const simdjson::padded_string text(text_of(file.bytes()));
  ondemand::parser parser;
  ondemand::document document;
  simdjson::error_code bad = parser.iterate(text).get(document);
  if (!bad) bad = Reader(visit).read(document);
  if (bad)
    return fail(Error(ErrorCode::kCorrupt, file.path())
                << "is not a whole dump.json of msprobe (" << simdjson::error_message(bad)
                << "); was the run cut short?");
  return {};
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  std::vector<Entry> entries;
  size_t left_out = 0;
  const auto read = each_tensor(*file, [&](const Item& item) {
    if (item.description)
      entries.push_back({item.name(), std::string(item.data_name), *item.description});
    else
      ++left_out;
  });
  if (!read) return fail(read.error());
  if (entries.empty() && left_out > 0)
    return fail(Error(ErrorCode::kCorrupt, file->path())
                << "none of its " << left_out << " tensors has a type and shape that ait knows");
  std::string note;
  if (left_out > 0)
    note = std::to_string(left_out) + " tensors were ignored: their type or shape is not known";
  return std::make_unique<DumpJson>(std::move(file), std::move(entries), std::move(note));
}

}  // namespace ait::formats::msprobe_json
