#include "formats/ge_statistics.h"

#include <gmock/gmock.h>

#include "zip_builder.h"

namespace ait::formats::ge_statistics {
namespace {

using testing::ElementsAre;

std::string array(const std::string& shape, const std::vector<float>& values,
                  const std::string& order = "False", const std::string& descr = "<f4") {
  const std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return "\x93NUMPY" + std::string("\1\0", 2) + little_endian(header.size(), 2) + header +
         bytes_of(values);
}

class GeStatistics : public testing::Test {
 protected:
  std::unique_ptr<TensorFile> open_archive(const std::vector<ZipEntry>& parts) {
    const auto file = folder_.map(build_zip(parts));
    EXPECT_TRUE(sniff(file->bytes()));
    auto opened = open(file);
    EXPECT_TRUE(opened) << opened.error().text();
    return std::move(*opened);
  }

  TempFolder folder_;
};

TEST_F(GeStatistics, GivesARowForEachTensor) {
  const auto file = open_archive({{.name = "inputs.npy", .data = array("(2, 2)", {-1, 3, 5, 6})},
                                  {.name = "outputs.npy", .data = array("(1, 2)", {7, 8})}});
  EXPECT_EQ(file->format(), "GE statistics");
  ASSERT_EQ(file->size(), 3U);
  EXPECT_EQ(file->name(1), "input_1");
  EXPECT_EQ(file->name(2), "output_0");
  EXPECT_THAT(values_of<float>(file->load(0).value()), ElementsAre(-1, 3));
  EXPECT_THAT(values_of<float>(file->load(1).value()), ElementsAre(5, 6));
  EXPECT_THAT(values_of<float>(file->load(2).value()), ElementsAre(7, 8));
}

TEST_F(GeStatistics, TakesOtherOrdersAndDeflatedMembers) {
  const auto file = open_archive({deflated("inputs.npy", array("(2, 2)", {1, 3, 2, 4}, "True")),
                                  deflated("outputs.npy", array("(0,)", {}))});
  ASSERT_EQ(file->size(), 2U);
  EXPECT_THAT(values_of<float>(file->load(0).value()), ElementsAre(1, 2));
  EXPECT_THAT(values_of<float>(file->load(1).value()), ElementsAre(3, 4));
}

TEST_F(GeStatistics, OtherArraysOfTheseNamesAreAnNpz) {
  const std::string rows = array("(1, 2)", {1, 2});
  EXPECT_EQ(open_archive({{.name = "inputs.npy", .data = rows}})->format(), "npz");
  EXPECT_EQ(open_archive({{.name = "inputs.npy", .data = array("(3,)", {1, 2, 3})},
                          {.name = "outputs.npy", .data = rows}})
                ->format(),
            "npz");
  EXPECT_EQ(open_archive({{.name = "inputs.npy", .data = rows.substr(0, rows.size() - 1)},
                          {.name = "outputs.npy", .data = rows}})
                ->format(),
            "npz");
  EXPECT_FALSE(sniff(folder_.map(build_zip({{.name = "x.npy", .data = rows}}))->bytes()));
}

}  // namespace
}  // namespace ait::formats::ge_statistics
