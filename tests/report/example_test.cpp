// The example at the head of report/cell.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "report/cell.h"
#include "report/csv.h"

namespace ait::report {
namespace {

Result<std::string> write_report(const std::string& folder) {
  const std::vector<std::string> header = {"name", "cosine_similarity", "shape"};
  const std::vector<Cell> row = {std::string("layers.0"), 0.5, std::vector<int64_t>{2, 3}};
  std::vector<std::string> texts;
  for (const Cell& cell : row) texts.push_back(cell_text(cell));
  auto csv = CsvWriter::create(folder, "report.csv", header);
  if (!csv) return fail(csv.error());
  if (auto done = csv->append(texts); !done) return fail(done.error());
  return csv->finish();
}

TEST(ReportExample, WritesOneRow) {
  const std::string folder = testing::TempDir() + "report_example";
  const auto path = write_report(folder);
  ASSERT_TRUE(path) << path.error().text();
  std::ifstream in(*path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
            "name,cosine_similarity,shape\nlayers.0,0.5,\"[2, 3]\"\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ait::report
