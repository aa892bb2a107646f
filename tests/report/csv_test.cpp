#include "report/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace ait::report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CsvFile : public ::testing::Test {
 protected:
  CsvFile() {
    std::string pattern = (fs::temp_directory_path() / "ait_csv_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CsvFile() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_))
      out.push_back(entry.path().filename().string());
    return out;
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static mode_t mode(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 0777;
  }

  std::string folder_;
  const std::vector<std::string> header_ = {"a", "b"};
};

TEST(CsvCell, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_cell("plain text"), "plain text");
  EXPECT_EQ(csv_cell("[1, 2]"), "\"[1, 2]\"");
  EXPECT_EQ(csv_cell("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a\r"), "a\\x0d") << "of what is written, not of what was given";
  EXPECT_EQ(csv_cell("标,杆\x7f"), "\"标,杆\\x7f\"");
  for (char c = ' '; c <= '~'; ++c)
    EXPECT_EQ(csv_cell(std::string("a") + c).front() == '"', c == ',' || c == '"') << c;
}

TEST(CsvCell, DisarmsFormulas) {
  for (const char* formula : {"=1+1", "+cmd", "-cmd", "@SUM(A1)", "%x", "＝1", "＋x", "－x", "％x",
                              "＠x", "\t=1", "  =1", "-1+1"})
    EXPECT_THAT(csv_cell(formula), HasSubstr(std::string("'") + formula)) << formula;
}

TEST(CsvCell, LeavesNumbersAlone) {
  for (const char* number : {"-7.5", "+3", "-inf", "-1e-05", "-nan"})
    EXPECT_EQ(csv_cell(number), number);
}

TEST(CsvCell, IsAlwaysValidUtf8) {
  EXPECT_EQ(csv_cell("bad\xff.npy"), "bad\\xff.npy");
  EXPECT_EQ(csv_cell("标杆"), "标杆");
}

TEST(CsvCell, HoldsNothingThatATerminalObeys) {
  EXPECT_EQ(csv_cell("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(csv_cell("exe.\u202egnp"), "exe.\\xe2\\x80\\xaegnp");
  EXPECT_EQ(csv_cell("a\u009bb\x7f\r"), "a\\xc2\\x9bb\\x7f\\x0d");
  EXPECT_EQ(csv_cell("a\tb\nc"), "\"a\tb\nc\"") << "tabs and lines are what csv is made for";
}

TEST_F(CsvFile, AppearsOnlyWhenFinished) {
  auto csv = CsvWriter::create(folder_, "report.csv", header_);
  ASSERT_TRUE(csv) << csv.error().text();
  ASSERT_TRUE(csv->append(std::vector<std::string>{"1", "[2, 3]"}));
  EXPECT_FALSE(fs::exists(path("report.csv")));
  const auto written = csv->finish();
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(*written, path("report.csv"));
  EXPECT_EQ(content(*written), "a,b\n1,\"[2, 3]\"\n");
  EXPECT_THAT(names(), UnorderedElementsAre("report.csv"));
}

TEST_F(CsvFile, LeavesNothingWhenNotFinished) {
  {
    ASSERT_TRUE(CsvWriter::create(folder_, "report.csv", header_));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CsvFile, NeverReplacesAnExistingReport) {
  std::ofstream(path("report.csv")) << "precious";
  for (const char* expected : {"report_1.csv", "report_2.csv"}) {
    auto csv = CsvWriter::create(folder_, "report.csv", header_);
    ASSERT_TRUE(csv);
    EXPECT_EQ(csv->finish().value_or(""), path(expected));
  }
  EXPECT_EQ(content(path("report.csv")), "precious");
}

TEST_F(CsvFile, MakesFoldersAndFilesForTheGroupOnly) {
  const mode_t before = ::umask(0);
  auto csv = CsvWriter::create(path("x/y"), "report.csv", header_);
  ASSERT_TRUE(csv) << csv.error().text();
  ASSERT_TRUE(csv->finish());
  ::umask(before);
  EXPECT_EQ(mode(path("x")), 0750);
  EXPECT_EQ(mode(path("x/y")), 0750);
  EXPECT_EQ(mode(path("x/y/report.csv")), 0640);
}

TEST_F(CsvFile, SaysThatAFileIsNoFolder) {
  std::ofstream(path("file")) << "x";
  for (const char* folder : {"file", "file/deeper"}) {
    const auto csv = CsvWriter::create(path(folder), "report.csv", header_);
    ASSERT_FALSE(csv);
    EXPECT_EQ(csv.error().code(), ErrorCode::kUnwritable);
  }
}

TEST_F(CsvFile, IsRemovedBySignalHandlersHelper) {
  auto csv = CsvWriter::create(folder_, "report.csv", header_);
  ASSERT_TRUE(csv);
  EXPECT_EQ(names().size(), 1U);
  remove_unfinished_files();
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_FALSE(csv->finish());
}

TEST_F(CsvFile, FinishedReportsSurviveTheSignalHandlersHelper) {
  auto csv = CsvWriter::create(folder_, "report.csv", header_);
  ASSERT_TRUE(csv);
  ASSERT_TRUE(csv->finish());
  remove_unfinished_files();
  EXPECT_THAT(names(), UnorderedElementsAre("report.csv"));
}

TEST_F(CsvFile, SurvivesBeingMoved) {
  auto csv = CsvWriter::create(folder_, "report.csv", header_);
  ASSERT_TRUE(csv);
  CsvWriter moved(std::move(*csv));
  ASSERT_TRUE(moved.append(header_));
  EXPECT_TRUE(moved.finish());
}

}  // namespace
}  // namespace ait::report
