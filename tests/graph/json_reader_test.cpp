#include "graph/json_reader.h"

#include <gmock/gmock.h>

#include <string>
#include <string_view>

namespace ait::graph {
namespace {

using ::testing::HasSubstr;

bool is_json(std::string_view text) {
  JsonReader json(text);
  json.skip();
  return json.finish().has_value();
}

std::string decoded(std::string_view text) {
  JsonReader json(text);
  std::string out = json.string();
  return json.finish() ? out : "refused";
}

TEST(JsonReader, TakesWhatTheStandardAllows) {
  for (const char* text :
       {"null", " true ", "false", "0", "-0", "-12.5e+07", "1E5", "18446744073709551616", "\"\"",
        "[]", "{}", "[1, [2], {\"a\" : []}]", "{\"a\":{\"a\":1},\"a\":2}", "\"\\u00e9\\n\\/\""})
    EXPECT_TRUE(is_json(text)) << text;
}

TEST(JsonReader, RefusesWhatTheStandardDoesNot) {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "nullx",
                           "True",
                           "01",
                           "+1",
                           "1.",
                           ".5",
                           "1e",
                           "-",
                           "0x1",
                           "NaN",
                           "Infinity",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "[1",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{a:1}",
                           "{\"a\":}",
                           "{1:2}",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "'a'",
                           "\"a\tb\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "1 2",
                           "{} x",
                           "[}",
                           "{]",
                           "/**/1",
                           "\"\\"})
    EXPECT_FALSE(is_json(text)) << text;
  EXPECT_FALSE(is_json(std::string_view("\"a\0b\"", 5)));
  EXPECT_FALSE(is_json(std::string_view("1\0", 2)));
}

TEST(JsonReader, DecodesStrings) {
  EXPECT_EQ(decoded(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(decoded(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(decoded("\"\u00e9\U0001F600\""), "\u00e9\U0001F600");
}

TEST(JsonReader, KeepsTheTextOfNumbers) {
  JsonReader json(R"({"a": 123456789012345678901234567890, "b": 1e-05, "c": 0.10, "d": -0})");
  std::string texts;
  json.each_member([&](const std::string& key) { texts += key + std::string(json.skip()) + " "; });
  EXPECT_TRUE(json.finish());
  EXPECT_EQ(texts, "a123456789012345678901234567890 b1e-05 c0.10 d-0 ");
}

TEST(JsonReader, SaysWhereItStopped) {
  JsonReader json(R"({"a": [1, x]})");
  json.skip();
  const auto read = json.finish();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().offset_bytes(), 10);
}

TEST(JsonReader, BoundsTheDepth) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(is_json(nested(JsonReader::kMaxDepth)));
  EXPECT_FALSE(is_json(nested(JsonReader::kMaxDepth + 1)));
  EXPECT_FALSE(is_json(std::string(10'000'000, '[')));
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(is_json(objects));
}

TEST(JsonReader, TakesWholeNumbersOnly) {
  for (const char* text : {"-1", "1.0", "1e2", "\"1\"", "null", "18446744073709551616", "[]"}) {
    JsonReader json(text);
    EXPECT_EQ(json.whole_number(), 0) << text;
    EXPECT_FALSE(json.finish()) << text;
  }
  JsonReader json("18446744073709551615");
  EXPECT_EQ(json.whole_number(), ~uint64_t{0});
  EXPECT_TRUE(json.finish());
}

TEST(JsonReader, RefusesAKnownFieldTwiceAndPassesOverUnknownOnes) {
  std::string name;
  const auto read = [&](std::string_view text) {
    JsonReader json(text);
    const uint32_t seen =
        read_fields(json, {{"x", [&] { json.skip(); }}, {"name", [&] { name = json.name(); }}});
    const auto done = json.finish();
    return done ? std::to_string(seen) : done.error().message();
  };
  EXPECT_EQ(read(R"({"other": [1], "name": "n", "other": 2})"), "2");
  EXPECT_EQ(name, "n");
  EXPECT_THAT(read(R"({"name": "n", "name": "n"})"), HasSubstr("twice"));
  EXPECT_THAT(read(R"({"name": "n", "n\u0061me": "n"})"), HasSubstr("twice"));
  EXPECT_THAT(read(R"({"name": "a\u0000b"})"), HasSubstr("NUL"));
}

TEST(JsonText, LosesOnlyTheSpaceBetweenItsParts) {
  EXPECT_EQ(compact(" {\n \"a b\" : [ 1e-05 ,\t\"\\\" x \\\\\" ] , \"c\":\r\n{ } } "),
            R"({"a b":[1e-05,"\" x \\"],"c":{}})");
}

TEST(JsonText, QuotesWhatJsonWants) {
  std::string out;
  append_quoted(out, std::string_view("a\"\\/\n\x01\x1f\x7f\u00e9\0", 11));
  EXPECT_EQ(out, "\"a\\\"\\\\/\\n\\u0001\\u001f\x7f\u00e9\\u0000\"");
  EXPECT_EQ(decoded(out).size(), 11);
}

}  // namespace
}  // namespace ait::graph
