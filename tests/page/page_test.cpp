#include "page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test_files.h"
#include "unpacked.h"

namespace ait::page {
namespace {

using formats::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Page small_page() {
  Page page;
  page.about.set("kind", "comparison").set("report", "</script><script>alert(1)</script>\u202e");
  const size_t name = page.table.add_column("data_id");
  page.table.set(name, report::Cell(std::string("<!--ait data--></script>")));
  page.table.end_row();
  return page;
}

TEST(Page, HoldsNoTextOfARunAsHtml) {
  const std::string text = page_text(small_page());
  EXPECT_THAT(text, StartsWith("<!doctype html><!--ait report-->"));
  EXPECT_THAT(text, Not(HasSubstr("alert(1)")));
  EXPECT_THAT(text, Not(HasSubstr("<!--ait data-->")));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  const auto about = about_of(text);
  EXPECT_EQ(about["report"], "</script><script>alert(1)</script>\u202e");
  EXPECT_EQ(about["table"]["rows"], 1);
  EXPECT_EQ(nlohmann::json::parse(parts_of(text).at("c0t"))[1], "<!--ait data--></script>");
}

TEST(Page, LoadsNothingFromAnywhere) {
  const std::string empty(empty_page());
  EXPECT_THAT(empty, HasSubstr("default-src 'none'"));
  EXPECT_THAT(empty, Not(HasSubstr(" src=\"")));
  EXPECT_THAT(empty, Not(HasSubstr("@import")));
  EXPECT_EQ(empty.find("<!--ait data-->"), empty.rfind("<!--ait data-->"));
  EXPECT_NE(empty.find("<!--ait data-->"), std::string::npos);
}

TEST(Page, ReplacesAnEarlierPageAndNothingElse) {
  const TempFolder folder;
  const std::string path = (folder.path() / "deep/report.html").string();
  ASSERT_TRUE(write_page(path, small_page()));
  ASSERT_TRUE(write_page(path, small_page())) << "it was a page";
  const std::string other = folder.write("notes.html", "<html>mine</html>");
  const auto refused = write_page(other, small_page());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
  EXPECT_FALSE(write_page(folder.path().string(), small_page())) << "a folder";
  std::ifstream kept(other);
  std::string text;
  std::getline(kept, text);
  EXPECT_EQ(text, "<html>mine</html>");
}

}  // namespace
}  // namespace ait::page
