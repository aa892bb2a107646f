#include "graph/ge_text.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/mapped_file.h"

namespace ait::graph {
namespace {

constexpr std::string_view kFxAttribute = "_fx_tensor_name";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+' || c == '/';
}
int digit(char c, int base) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : base;
  return value < base ? value : -1;
}

// What is between the quotes, with escapes as what they stand for.
std::string unescaped(std::string_view raw) {
  std::string out;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    const auto number = [&](int base, size_t most) {
      int value = 0;
      size_t digits = 0;
      for (; digits < most && i + digits < raw.size() && digit(raw[i + digits], base) >= 0;
           ++digits)
        value = value * base + digit(raw[i + digits], base);
      i += digits;
      --i;
      out += static_cast<char>(value);
    };
    constexpr std::string_view kLetters = "abfnrtv";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v";
    if (digit(c, 8) >= 0) {
      number(8, 3);
    } else if ((c == 'x' || c == 'X') && i + 1 < raw.size() && digit(raw[i + 1], 16) >= 0) {
      ++i;
      number(16, 2);
    } else if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
      out += kMeanings[at];
    } else {
      out += c;
    }
  }
  return out;
}

// A field of a message: its name, and its value where that is one word or text.
struct Field {
  std::string_view name;
  std::string_view value;  // a text as it stands between its quotes
  bool is_text = false;
  bool is_message = false;  // its fields come next, up to the end of the message

  std::string text() const { return is_text ? unescaped(value) : std::string(value); }
};

// Goes through a text field by field.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  // The next field of the message that is being read; nothing at its end.
  Result<std::optional<Field>> next() {
    while (skip_space(), at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ';')) ++at_;
    if (at_ == text_.size()) {
      if (depth_ > 0) return fail(error() << "ends inside a block; was the run cut short?");
      return std::nullopt;
    }
    if (text_[at_] == '}') {
      if (depth_ == 0) return fail(error() << "closes a block that was not opened");
      --depth_;
      ++at_;
      return std::nullopt;
    }
    Field field;
    field.name = take_name();
    if (field.name.empty()) return fail(error() << "expected the name of a field");
    skip_space();
    const bool has_colon = at_ < text_.size() && text_[at_] == ':';
    if (has_colon) {
      ++at_;
      skip_space();
    }
    if (at_ < text_.size() && text_[at_] == '{') {
      ++at_;
      if (++depth_ > kMaxTextDepth) return fail(error() << "nests blocks too deep");
      field.is_message = true;
      return field;
    }
    if (!has_colon) return fail(error() << "expected ':' or '{' after " << printable(field.name));
    if (auto taken = take_value(field); !taken) return fail(taken.error());
    return field;
  }

  // The rest of the message that a field has opened.
  Result<void> skip() {
    const size_t outside = depth_ - 1;
    while (depth_ > outside)
      if (const auto field = next(); !field) return fail(field.error());
    return {};
  }

 private:
  void skip_space() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  std::string_view take_word() {
    const size_t first = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(first, at_ - first);
  }

  // Extensions stand in brackets.
  std::string_view take_name() {
    if (text_[at_] != '[') return take_word();
    const size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) return {};
    const std::string_view name = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return name;
  }

  // What is between the quotes at this place; nothing where they do not end.
  std::optional<std::string_view> take_quoted() {
    const char quote = text_[at_];
    const size_t first = ++at_;
    while (true) {
      const char stops[] = {quote, '\\', '\0'};
      at_ = std::min(text_.find_first_of(std::string_view(stops, 2), at_), text_.size());
      if (at_ == text_.size()) return std::nullopt;
      if (text_[at_] == quote) return text_.substr(first, at_++ - first);
      at_ = std::min(at_ + 2, text_.size());
    }
  }

  Result<void> take_value(Field& field) {
    if (at_ == text_.size()) return fail(error() << "ends before a value; was the run cut short?");
    const char c = text_[at_];
    if (c == '[') return skip_list();
    if (c != '"' && c != '\'') {
      field.value = take_word();
      if (field.value.empty())
        return fail(error() << "expected the value of " << printable(field.name));
      return {};
    }
    field.is_text = true;
    const auto quoted = take_quoted();
    if (!quoted) return fail(error() << "ends inside a text; was the run cut short?");
    field.value = *quoted;
    // Texts one after the other are one text; nobody writes names so.
    for (skip_space(); at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'');
         skip_space())
      if (!take_quoted()) return fail(error() << "ends inside a text; was the run cut short?");
    return {};
  }

  // A list holds values or messages, whose brackets need only be counted.
  Result<void> skip_list() {
    size_t open = 0;
    do {
      skip_space();
      if (at_ == text_.size()) return fail(error() << "ends inside a list; was the run cut short?");
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        if (!take_quoted()) return fail(error() << "ends inside a text; was the run cut short?");
        continue;
      }
      if (c == '[' || c == '{') ++open;
      if (c == ']' || c == '}') --open;
      ++at_;
    } while (open > 0);
    return {};
  }

  Error error() const {
    const auto lines = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
    return Error(ErrorCode::kCorrupt)
           << "is not a graph in protobuf's text form: line " << lines + 1 << " ";
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t depth_ = 0;
};

// "Cast_1:0"; nothing of "" and of a control edge, "Cast_1:-1".
std::optional<GeOperation::Source> source_of(const std::string& text) {
  const size_t colon = text.rfind(':');
  GeOperation::Source out;
  out.operation = text.substr(0, colon);
  if (out.operation.empty()) return std::nullopt;
  if (colon == std::string::npos) return out;
  const char* end = text.data() + text.size();
  const auto [stopped, bad] = std::from_chars(text.data() + colon + 1, end, out.output);
  if (bad != std::errc() || stopped != end) return std::nullopt;
  return out;
}

class GraphReader {
 public:
  explicit GraphReader(std::string_view text) : reader_(text) {}

  Result<GeGraph> read() {
    auto done = each_field([&](const Field& field) -> Result<bool> {
      if (field.name == "name" && field.is_text) graph_.name = field.text();
      if (field.name != "op" || !field.is_message) return false;
      return taken(read_operation());
    });
    if (!done) return fail(done.error());
    return std::move(graph_);
  }

 private:
  static Result<bool> taken(const Result<void>& read) {
    if (!read) return fail(read.error());
    return true;
  }

  // Calls visit(field) for every field of a message, and passes over those messages that it does not
  // read itself.
  template <typename Visit>
  Result<void> each_field(Visit visit) {
    while (true) {
      const auto field = reader_.next();
      if (!field) return fail(field.error());
      if (!*field) return {};
      const Result<bool> was_read = visit(**field);
      if (!was_read) return fail(was_read.error());
      if ((*field)->is_message && !*was_read)
        if (auto skipped = reader_.skip(); !skipped) return skipped;
    }
  }

  Result<void> read_operation() {
    GeOperation operation;
    auto done = each_field([&](const Field& field) -> Result<bool> {
      if (field.is_message) {
        if (field.name != "output_desc") return false;
        return taken(read_output(operation.fx_tensors.emplace_back()));
      }
      if (field.name == "name") operation.name = field.text();
      if (field.name == "type") operation.type = field.text();
      if (field.name == "input")
        if (auto source = source_of(field.text())) operation.inputs.push_back(std::move(*source));
      return false;
    });
    if (done) graph_.operations.push_back(std::move(operation));
    return done;
  }

  Result<void> read_output(std::string& fx_tensor) {
    return each_field([&](const Field& field) -> Result<bool> {
      if (field.name != "attr" || !field.is_message) return false;
      return taken(read_attribute(fx_tensor));
    });
  }

  // The key comes before its value, as every writer of maps has it.
  Result<void> read_attribute(std::string& fx_tensor) {
    bool is_ours = false;
    return each_field([&](const Field& field) -> Result<bool> {
      if (field.name == "key" && field.is_text) is_ours = field.text() == kFxAttribute;
      if (field.name != "value" || !field.is_message || !is_ours) return false;
      return taken(each_field([&](const Field& inner) -> Result<bool> {
        if (inner.name == "s" && inner.is_text) fx_tensor = inner.text();
        return false;
      }));
    });
  }

  TextReader reader_;
  GeGraph graph_;
};

}  // namespace

Result<GeGraph> parse_ge_text(std::string_view text) { return GraphReader(text).read(); }

Result<GeGraph> read_ge_text(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const auto bytes = (*file)->bytes();
  auto graph = parse_ge_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!graph) graph.error().set_path(path);
  return graph;
}

}  // namespace ait::graph
