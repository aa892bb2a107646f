#include "graph/atb_param.h"

#include <algorithm>
#include <charconv>

#include "graph/json_reader.h"

namespace ait::graph {
namespace {

using Kind = JsonReader::Kind;

// A JSON number as a T, or nothing where T cannot hold it.
template <typename T>
std::optional<T> as_number(std::string_view written) {
  T value{};
  const char* end = written.data() + written.size();
  const auto [stop, bad] = std::from_chars(written.data(), end, value);
  if (bad != std::errc() || stop != end) return std::nullopt;
  return value;
}

template <typename T>
std::optional<T> take_number(JsonReader& json) {
  const auto kind = json.kind();
  const std::string_view written = json.skip();
  return kind == Kind::kNumber ? as_number<T>(written) : std::nullopt;
}

template <typename T>
std::optional<std::vector<T>> take_list(JsonReader& json) {
  if (json.kind() != Kind::kArray) return std::nullopt;
  std::vector<T> list;
  bool all = true;
  json.each_item([&] {
    const auto item = take_number<T>(json);
    all &= item.has_value();
    if (item) list.push_back(*item);
  });
  return all ? std::optional(std::move(list)) : std::nullopt;
}

std::string list_text(std::span<const AtbValue> values) {
  std::string out;
  const AtbValue* last = nullptr;
  for (const AtbValue& value : values) {
    if (last == nullptr || last->number != value.number)
      out += (out.empty() ? "" : ", ") + std::to_string(value.number);
    last = &value;
  }
  return "[" + out + "]";
}

}  // namespace

AtbParam::AtbParam(std::string_view text) {
  if (text.empty()) return;
  JsonReader json(text);
  const auto kind = json.kind();
  const auto add = [&](std::string name) {
    const std::string_view written = json.skip();
    if (!json.failed() && written != "null") members_.push_back({std::move(name), written});
  };
  if (kind == Kind::kObject) {
    json.each_member([&](const std::string& key) {
      if (json.kind() == Kind::kObject)
        json.each_member([&](const std::string& sub) { add(key + "." + sub); });
      else
        add(key);
    });
  } else if (kind == Kind::kString) {
    if (!json.string().empty()) json.refuse("parameters are an object, not a text");
  } else if (json.skip(); kind != Kind::kNull) {
    json.refuse("parameters are an object of keys and values");
  }
  if (auto read = json.finish(); !read)
    error_ = Error(read.error()) << " in the JSON of the parameters";
}

const AtbParam::Member* AtbParam::find(std::string_view key) const {
  const auto named = [&](std::string_view name) {
    const auto found = std::find_if(members_.rbegin(), members_.rend(),
                                    [&](const Member& member) { return member.name == name; });
    return found == members_.rend() ? nullptr : &*found;
  };
  const Member* member = named(key);
  const size_t dot = key.rfind('.');
  if (member == nullptr && dot != std::string_view::npos) member = named(key.substr(dot + 1));
  return member;
}

template <typename Value, typename Read>
Value AtbParam::read(std::string_view key, Value missing, std::string_view expected, Read take) {
  const Member* member = find(key);
  if (error_ || member == nullptr) return missing;
  JsonReader json(member->written);
  std::optional<Value> value = take(json);
  if (value) return std::move(*value);
  error_ = Error(ErrorCode::kCorrupt)
           << printable(key) << " must be " << expected << ", not " << printable(member->written);
  return missing;
}

int64_t AtbParam::integer(std::string_view key, int64_t missing) {
  return read(key, missing, "a whole number", take_number<int64_t>);
}

double AtbParam::number(std::string_view key, double missing) {
  return read(key, missing, "a number", take_number<double>);
}

bool AtbParam::flag(std::string_view key, bool missing) {
  return read(key, missing, "true or false", [](JsonReader& json) -> std::optional<bool> {
    if (json.kind() != Kind::kBool) return std::nullopt;
    return json.skip() == "true";
  });
}

std::string AtbParam::text(std::string_view key, std::string_view missing) {
  return read(key, std::string(missing), "a text",
              [](JsonReader& json) -> std::optional<std::string> {
                if (json.kind() != Kind::kString) return std::nullopt;
                return json.string();
              });
}

std::vector<int64_t> AtbParam::integers(std::string_view key, std::vector<int64_t> missing) {
  return read(key, std::move(missing), "a list of whole numbers", take_list<int64_t>);
}

std::vector<double> AtbParam::numbers(std::string_view key, std::vector<double> missing) {
  return read(key, std::move(missing), "a list of numbers", take_list<double>);
}

int64_t AtbParam::choose(std::string_view key, int64_t missing, std::span<const AtbValue> values) {
  const Member* member = find(key);
  if (error_ || member == nullptr) return missing;
  JsonReader json(member->written);
  const bool by_name = json.kind() == Kind::kString;
  const std::string name = by_name ? json.string() : std::string();
  const auto number = by_name ? std::nullopt : take_number<int64_t>(json);
  for (const AtbValue& value : values)
    if (by_name ? value.name == name : value.number == number) return value.number;
  // The words of the check of single operators, which puts them in its report.
  error_ = Error(ErrorCode::kUnsupported) << printable(key) << " " << printable(member->written)
                                          << " is not in range " << list_text(values);
  return missing;
}

Result<void> AtbParam::finish() const {
  if (error_) return fail(*error_);
  return {};
}

}  // namespace ait::graph
