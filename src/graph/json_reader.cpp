#include "graph/json_reader.h"

#include <algorithm>
#include <charconv>

#include "record/file_image.h"

namespace ait::graph {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, uint32_t code) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

}  // namespace

void JsonReader::refuse(std::string_view why) {
  if (failed()) return;
  error_ = Error(ErrorCode::kCorrupt, {}, at_) << why;
  at_ = text_.size();
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

std::optional<JsonReader::Kind> JsonReader::kind() {
  skip_space();
  if (failed() || at_ == text_.size()) return std::nullopt;
  switch (text_[at_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 'n':
      return Kind::kNull;
    case 't':
    case 'f':
      return Kind::kBool;
    default:
      if (text_[at_] == '-' || is_digit(text_[at_])) return Kind::kNumber;
      return std::nullopt;
  }
}

bool JsonReader::enter(char bracket, std::string_view what) {
  skip_space();
  if (failed()) return false;
  if (at_ == text_.size() || text_[at_] != bracket) {
    refuse(std::string(what) + " is expected here" +
           (at_ == text_.size() ? ", but the text ends; it was probably cut short" : ""));
    return false;
  }
  if (++depth_ > kMaxDepth) {
    refuse("the JSON is nested deeper than " + std::to_string(kMaxDepth) +
           " levels; no topology is");
    return false;
  }
  ++at_;
  return true;
}

bool JsonReader::leave(char bracket) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != bracket) return failed();
  ++at_;
  return true;
}

bool JsonReader::another(char bracket) {
  if (leave(bracket)) return false;
  expect(',');
  return !failed();
}

void JsonReader::expect(char wanted) {
  skip_space();
  if (failed()) return;
  if (at_ < text_.size() && text_[at_] == wanted) {
    ++at_;
  } else {
    refuse(at_ == text_.size()
               ? std::string("the JSON ends in the middle; the file was probably cut short")
               : std::string("JSON needs '") + wanted + "' here");
  }
}

void JsonReader::expect_word(std::string_view word) {
  if (text_.substr(at_, word.size()) == word)
    at_ += word.size();
  else
    refuse("this is no JSON value");
}

void JsonReader::scan_number() {
  const auto digits = [&] {
    const size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == first) refuse("a digit is missing in this number");
  };
  const auto next_is = [&](std::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != std::string_view::npos;
  };
  if (next_is("-")) ++at_;
  if (next_is("0"))
    ++at_;
  else
    digits();
  if (next_is(".")) {
    ++at_;
    digits();
  }
  if (next_is("eE")) {
    ++at_;
    if (next_is("+-")) ++at_;
    digits();
  }
}

uint32_t JsonReader::four_hex_digits() {
  uint32_t code = 0;
  const char* first = text_.data() + at_;
  const char* last = first + std::min<size_t>(4, text_.size() - at_);
  const auto [end, bad] = std::from_chars(first, last, code, 16);
  if (bad != std::errc() || end != first + 4)
    refuse("\\u needs four hexadecimal digits");
  else
    at_ += 4;
  return code;
}

// After the backslash.
void JsonReader::scan_escape(std::string* decoded) {
  static constexpr std::string_view kLetters = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char letter = at_ < text_.size() ? text_[at_++] : '\0';
  if (letter != 'u') {
    const size_t which = kLetters.find(letter);
    if (which == std::string_view::npos || letter == '\0')
      refuse("a backslash is followed by something that JSON does not know");
    else if (decoded != nullptr)
      *decoded += kMeanings[which];
    return;
  }
  uint32_t code = four_hex_digits();
  if (code >= 0xd800 && code < 0xe000) {
    const uint32_t high = code;
    uint32_t low = 0;
    if (high < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      low = four_hex_digits();
    }
    if (low < 0xdc00 || low >= 0xe000) return refuse("half a surrogate pair is not a character");
    code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
  }
  if (decoded != nullptr && !failed()) append_utf8(*decoded, code);
}

void JsonReader::scan_string(std::string* decoded) {
  expect('"');
  while (!failed()) {
    if (at_ == text_.size())
      return refuse("a string does not end; the file was probably cut short");
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return;
    }
    if (c == '\\') {
      ++at_;
      scan_escape(decoded);
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20)
      return refuse("a string holds a control character, which JSON writes as \\u00…");
    const size_t length = record::utf8_length(text_.data() + at_, text_.size() - at_);
    if (length == 0) return refuse("a string is not UTF-8");
    if (decoded != nullptr) decoded->append(text_, at_, length);
    at_ += length;
  }
}

std::string JsonReader::string() {
  std::string decoded;
  skip_space();
  if (!failed() && (at_ == text_.size() || text_[at_] != '"'))
    refuse("a text in quotes is expected here");
  else
    scan_string(&decoded);
  return failed() ? std::string() : decoded;
}

std::string JsonReader::name() {
  std::string decoded = string();
  if (decoded.find('\0') != std::string::npos) refuse("a name holds a NUL character");
  return decoded;
}

uint64_t JsonReader::whole_number() {
  const bool is_number = kind() == Kind::kNumber;
  const size_t start = at_;
  const std::string_view written = is_number ? skip() : std::string_view();
  uint64_t value = 0;
  const auto [end, bad] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (failed()) return 0;
  if (written.empty() || bad != std::errc() || end != written.data() + written.size()) {
    at_ = start;
    refuse("a whole number, not negative, is expected here");
    return 0;
  }
  return value;
}

std::string_view JsonReader::skip() {
  const auto next = kind();
  const size_t start = at_;
  if (failed()) return {};
  if (!next) {
    refuse(at_ == text_.size() ? "the JSON ends where a value is missing"
                               : "this is no JSON value");
    return {};
  }
  switch (*next) {
    case Kind::kObject:
      each_member([&](const std::string&) { skip(); });
      break;
    case Kind::kArray:
      each_item([&] { skip(); });
      break;
    case Kind::kString:
      scan_string(nullptr);
      break;
    case Kind::kNumber:
      scan_number();
      break;
    case Kind::kBool:
      expect_word(text_[at_] == 't' ? "true" : "false");
      break;
    case Kind::kNull:
      expect_word("null");
      break;
  }
  return failed() ? std::string_view() : text_.substr(start, at_ - start);
}

Result<void> JsonReader::finish() {
  skip_space();
  if (!failed() && at_ < text_.size()) refuse("something follows the end of the JSON value");
  if (error_) return fail(*error_);
  return {};
}

uint32_t read_fields(JsonReader& json, std::initializer_list<JsonField> fields) {
  uint32_t seen = 0;
  json.each_member([&](const std::string& key) {
    uint32_t bit = 1;
    for (const JsonField& field : fields) {
      if (field.key == key) {
        if ((seen & bit) != 0)
          return json.refuse("\"" + key +
                             "\" comes twice; which of the two is meant cannot be told");
        seen |= bit;
        return field.read();
      }
      bit <<= 1;
    }
    json.skip();
  });
  return seen;
}

std::string compact(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!in_string && is_space(c)) continue;
    out += c;
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\' && i + 1 < json.size()) out += json[++i];
  }
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  static constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
  static constexpr std::string_view kLetters = "\"\\bfnrt";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t which = kSpecial.find(c); which != std::string_view::npos) {
      out += '\\';
      out += kLetters[which];
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace ait::graph
