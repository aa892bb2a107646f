#include "report/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ait::report {
namespace {

TEST(JsonText, IsReadBackByAnIndependentParser) {
  JsonObject inner;
  inner.set("name", "quote \" back \\ line \n bell \a del \x7f 标杆").set("none", Cell());
  JsonObject root;
  root.set("inner", inner)
      .set("shape", std::vector<int64_t>{1, 13, 4096})
      .set("count", uint64_t{1} << 63)
      .set("negative", int64_t{-5})
      .set("flag", true)
      .set("list", JsonArray{1.5, "two"})
      .set("empty", JsonArray{})
      .set("third", 1.0 / 3);
  const auto read = nlohmann::json::parse(Json(root).text());
  EXPECT_EQ(read["inner"]["name"], "quote \" back \\ line \n bell \a del \x7f 标杆");
  EXPECT_TRUE(read["inner"]["none"].is_null());
  EXPECT_EQ(read["shape"], nlohmann::json({1, 13, 4096}));
  EXPECT_EQ(read["count"], uint64_t{1} << 63);
  EXPECT_EQ(read["negative"], -5);
  EXPECT_EQ(read["flag"], true);
  EXPECT_EQ(read["list"], nlohmann::json({1.5, "two"}));
  EXPECT_TRUE(read["empty"].empty());
  EXPECT_EQ(read["third"].get<double>(), 1.0 / 3);
}

TEST(JsonText, SpellsWhatIsNotFiniteAsStrings) {
  EXPECT_EQ(Json(std::nan("")).text(), "\"nan\"");
  EXPECT_EQ(Json(-INFINITY).text(), "\"-inf\"");
}

TEST(JsonText, HoldsNothingThatATerminalObeys) {
  const std::string text = "a\x1b[2J\u202e\u009b标\u2028";
  EXPECT_EQ(Json(text).text(), "\"a\\u001b[2J\\u202e\\u009b标\\u2028\"");
  EXPECT_EQ(nlohmann::json::parse(Json(text).text()), text);
}

TEST(JsonText, StaysValidWhenBytesAreNotUtf8) {
  EXPECT_EQ(nlohmann::json::parse(Json(std::string("a\xff")).text()), "a\\xff");
}

}  // namespace
}  // namespace ait::report
