// Walks through JSON text value by value, strictly by RFC 8259, and hands out the text of any value
// as it stands.
//
//   JsonReader json(text);
//   json.each_member([&](const std::string& key) {
//     if (key == "opName") name = json.string();
//     else json.skip();
//   });
//   if (auto read = json.finish(); !read) return fail(read.error());
//
// Parameters must come out with the digits they went in with, and the JSON libraries at hand keep a
// number's value but not its text. The first mistake is remembered; from then on every call
// returns at once with nothing and every loop ends, so a caller asks once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/topology.h"

namespace ait::graph {

class JsonReader {
 public:
  // A node is an object in an array, so each level of a topology is two of JSON; the rest is for
  // the parameters of the lowest.
  static constexpr size_t kMaxDepth = 2 * kMaxLevels + 64;

  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

  // The text must outlive the reader.
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Of the value that comes next; null where there is none.
  std::optional<Kind> kind();

  std::string string();     // decoded, as UTF-8
  std::string name();       // the same, but without NUL, at which others would end it
  uint64_t whole_number();  // not negative, no fraction, no exponent
  std::string_view skip();  // any value; its text, white space inside included
  bool failed() const { return error_.has_value(); }

  // Calls visit(key) for each member; it must take exactly one value.
  template <typename Visit>
  void each_member(Visit visit) {
    if (!enter('{', "an object")) return;
    for (bool more = !leave('}'); more; more = another('}')) {
      const std::string key = string();
      expect(':');
      if (!failed()) visit(key);
    }
    --depth_;
  }

  // Calls visit() for each element; it must take exactly one value.
  template <typename Visit>
  void each_item(Visit visit) {
    if (!enter('[', "a list")) return;
    for (bool more = !leave(']'); more; more = another(']')) visit();
    --depth_;
  }

  // A mistake in what the text means rather than in how it is written.
  void refuse(std::string_view why);

  // Whether everything was understood and nothing follows the value.
  Result<void> finish();

 private:
  void skip_space();
  bool enter(char bracket, std::string_view what);
  bool leave(char bracket);
  bool another(char bracket);
  void expect(char wanted);
  void expect_word(std::string_view word);
  void scan_number();
  void scan_string(std::string* decoded);
  void scan_escape(std::string* decoded);
  uint32_t four_hex_digits();

  std::string_view text_;
  size_t at_ = 0;
  size_t depth_ = 0;
  std::optional<Error> error_;
};

// One member that is wanted, and how its value is taken.
struct JsonField {
  std::string_view key;
  std::function<void()> read;
};

// Takes an object whose members may come in any order: unknown ones are passed over, one of
// `fields` twice is a mistake. Bit i of the answer says whether fields[i] was there.
uint32_t read_fields(JsonReader& json, std::initializer_list<JsonField> fields);

// Valid JSON text without the white space between its parts.
std::string compact(std::string_view json);

// Appends the text as a JSON string, with its quotes.
void append_quoted(std::string& out, std::string_view text);

}  // namespace ait::graph
