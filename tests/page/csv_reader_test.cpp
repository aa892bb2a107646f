#include "page/csv_reader.h"

#include <gtest/gtest.h>

#include "report/csv.h"

namespace ait::page {
namespace {

TEST(CsvReader, ReadsWhatTheWriterWrites) {
  const std::vector<std::string> texts = {"plain", "a,b", "say \"x\"", "two\nlines",
                                          "=1+1",  "",    "-0.5"};
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : ",") + report::csv_cell(text);
  const auto rows = read_csv("h1,h2\n" + line + "\n");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[1], texts);
}

TEST(CsvReader, TakesALastLineWithoutItsEnd) {
  const auto rows = read_csv("a,b\r\n1,2");
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)[1], (std::vector<std::string>{"1", "2"}));
}

TEST(CsvReader, RefusesAQuoteWithoutEndAndNothing) {
  EXPECT_FALSE(read_csv("a,\"b\n"));
  EXPECT_FALSE(read_csv(""));
}

}  // namespace
}  // namespace ait::page
