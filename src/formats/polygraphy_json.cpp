#include "formats/polygraphy_json.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "formats/npy.h"
#include "formats/torch_zip.h"

namespace ait::formats::polygraphy_json {
namespace {

namespace ondemand = simdjson::ondemand;

// Every object that Polygraphy encodes says so, the outermost at the end of the file; versions before
// 0.38 by the second.
constexpr std::string_view kMark = "\"polygraphy_class\"";
constexpr std::string_view kOldMark = "\"__polygraphy_encoded_";
constexpr size_t kMarkWithinBytes = 4096;
constexpr size_t kMaxNameBytes = 1024;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Entry {
  std::string runner;
  std::string name;          // "0/logits"
  bool is_torch = false;     // else numpy
  size_t text_bytes_at = 0;  // of the base64 text, in the file
  size_t text_bytes = 0;
};

// "onnxrt-runner-N0" of "onnxrt-runner-N0-06/24/26-12:34:56", as Polygraphy names a runner that
// nobody named: who it is, without when that was.
std::string_view without_time(std::string_view runner) {
  constexpr std::string_view kNumber = "-N";
  const size_t at = runner.find(kNumber);
  if (at == std::string_view::npos) return runner;
  const size_t end = runner.find_first_not_of("0123456789", at + kNumber.size());
  const bool is_followed = end != std::string_view::npos && end > at + kNumber.size();
  return is_followed && runner[end] == '-' ? runner.substr(0, end) : runner;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  simdjson::error_code read(ondemand::document& document) {
    ondemand::json_type type{};
    if (const auto bad = document.type().get(type)) return bad;
    if (type == ondemand::json_type::array) {
      ondemand::array iterations;
      if (const auto bad = document.get_array().get(iterations)) return bad;
      return read_iterations(iterations, /*has_outputs=*/false);
    }
    ondemand::array runners;
    if (const auto bad = document["lst"].get_array().get(runners)) return bad;
    for (auto pair : runners) {
      ondemand::array parts;
      if (const auto bad = pair.get_array().get(parts)) return bad;
      size_t place = 0;
      for (auto part : parts) {
        if (place == 0) {
          std::string_view name;
          if (const auto bad = part.get_string().get(name)) return bad;
          runner_ = name.substr(0, kMaxNameBytes);
          std::replace(runner_.begin(), runner_.end(), '/', '_');
          runners_.insert(runner_);
        } else if (place == 1) {
          ondemand::array iterations;
          if (const auto bad = part.get_array().get(iterations)) return bad;
          if (const auto bad = read_iterations(iterations, /*has_outputs=*/true)) return bad;
        }
        ++place;
      }
    }
    return simdjson::SUCCESS;
  }

  std::vector<Entry> take() && {
    if (runners_.size() < 2) return std::move(entries_);
    std::set<std::string_view> short_names;
    for (const std::string& runner : runners_) short_names.insert(without_time(runner));
    const bool are_enough = short_names.size() == runners_.size();
    for (Entry& entry : entries_)
      entry.name =
          std::string(are_enough ? without_time(entry.runner) : entry.runner) + "/" + entry.name;
    return std::move(entries_);
  }

 private:
  simdjson::error_code read_iterations(ondemand::array iterations, bool has_outputs) {
    size_t number = 0;
    for (auto each : iterations) {
      ondemand::object tensors;
      if (has_outputs) {
        if (const auto bad = each["outputs"].get_object().get(tensors)) return bad;
      } else if (const auto bad = each.get_object().get(tensors)) {
        return bad;
      }
      for (auto field : tensors) {
        std::string_view key;
        if (const auto bad = field.unescaped_key().get(key)) return bad;
        const std::string name =
            std::to_string(number) + "/" + std::string(key.substr(0, kMaxNameBytes));
        ondemand::value value;
        if (const auto bad = field.value().get(value)) return bad;
        if (const auto bad = read_tensor(name, value, 0)) return bad;
      }
      ++number;
    }
    return simdjson::SUCCESS;
  }

  // {"array": "…"}, {"tensor": "…"}, or one of these under "values". Anything else is no tensor.
  simdjson::error_code read_tensor(const std::string& name, ondemand::value value, size_t depth) {
    constexpr size_t kMaxWrappers = 4;
    if (depth > kMaxWrappers) return simdjson::DEPTH_ERROR;
    const std::string_view token = value.raw_json_token();
    if (!token.starts_with('{')) return simdjson::SUCCESS;
    ondemand::object object;
    if (const auto bad = value.get_object().get(object)) return bad;
    for (auto field : object) {
      std::string_view key;
      ondemand::value inner;
      if (const auto bad = field.unescaped_key().get(key)) return bad;
      if (const auto bad = field.value().get(inner)) return bad;
      if (key == "values") {
        if (const auto bad = read_tensor(name, inner, depth + 1)) return bad;
      } else if (key == "array" || key == "tensor") {
        const bool is_torch = key == "tensor";
        const std::string_view raw = inner.raw_json_token();
        const size_t end = raw.find('"', 1);
        if (!raw.starts_with('"') || end == std::string_view::npos) return simdjson::STRING_ERROR;
        entries_.push_back(
            {runner_, name, is_torch, static_cast<size_t>(raw.data() - text_.data()) + 1, end - 1});
      }
    }
    return simdjson::SUCCESS;
  }

  std::string_view text_;
  std::string runner_;
  std::set<std::string> runners_;
  std::vector<Entry> entries_;
};

Result<std::shared_ptr<const MappedFile>> decoded(std::string_view text) {
  const auto malformed = [] {
    return Error(ErrorCode::kCorrupt) << "its data are not base64 text; the file is damaged, or of "
                                         "a version of Polygraphy that ait does not know";
  };
  const auto bytes = base64_bytes(text);
  if (!bytes) return fail(malformed());
  return MappedFile::temporary(*bytes, [&](std::span<std::byte> out) -> Result<void> {
    if (!from_base64(text, out)) return fail(malformed());
    return {};
  });
}

class Results : public TensorFile {
 public:
  Results(std::shared_ptr<const MappedFile> file, std::vector<Entry> entries)
      : file_(std::move(file)), entries_(std::move(entries)) {}

  std::string_view format() const override { return "Polygraphy JSON"; }
  size_t size() const override { return entries_.size(); }
  std::string name(size_t index) const override { return entries_[index].name; }

  Result<Tensor> load(size_t index) const override {
    const Entry& entry = entries_[index];
    auto tensor = load_entry(entry);
    if (tensor) return tensor;
    return fail(Error(tensor.error().code(), file_->path())
                << "tensor " << printable(entry.name) << ": " << tensor.error().message());
  }

 private:
  Result<Tensor> load_entry(const Entry& entry) const {
    auto bytes = decoded(text_of(file_->bytes()).substr(entry.text_bytes_at, entry.text_bytes));
    if (!bytes) return fail(bytes.error());
    auto inner = entry.is_torch ? torch_zip::open(*std::move(bytes)) : npy::open(*std::move(bytes));
    if (!inner) return fail(inner.error());
    if ((*inner)->size() != 1)
      return fail(Error(ErrorCode::kCorrupt) << "it is no single tensor; the file is damaged");
    return (*inner)->load(0);
  }

  std::shared_ptr<const MappedFile> file_;
  std::vector<Entry> entries_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes);
  const std::string_view head = text.substr(0, kMarkWithinBytes);
  const std::string_view tail = text.substr(text.size() - head.size());
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (head[first] != '{' && head[first] != '[')) return false;
  return tail.find(kMark) != std::string_view::npos ||
         tail.find(kOldMark) != std::string_view::npos;
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  if (file->bytes().size() > kMaxBytes)
    return fail(Error(ErrorCode::kUnsupported, file->path())
                << "is larger than what ait reads of Polygraphy's JSON (3 GiB); save fewer "
                   "iterations");
  const simdjson::padded_string text(text_of(file->bytes()));
  ondemand::parser parser;
  ondemand::document document;
  Reader reader(text);
  simdjson::error_code bad = parser.iterate(text).get(document);
  if (!bad) bad = reader.read(document);
  if (bad)
    return fail(Error(ErrorCode::kCorrupt, file->path())
                << "is no list of inputs or outputs of Polygraphy (" << simdjson::error_message(bad)
                << "); was the file cut short?");
  return std::make_unique<Results>(std::move(file), std::move(reader).take());
}

}  // namespace ait::formats::polygraphy_json
