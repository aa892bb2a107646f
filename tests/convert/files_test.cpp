#include "convert/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/registry.h"
#include "ge_builder.h"

namespace ait::convert {
namespace {

namespace ge = formats::ge_builder;

using formats::FileFormat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConvertFiles : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::vector<float> values(const std::string& path, const std::string& name = "") const {
    const auto tensor = formats::load_single(path, name);
    return tensor ? formats::values_of<float>(*tensor) : std::vector<float>{};
  }

  formats::TempFolder folder_;
  std::atomic<bool> stop_ = false;
  std::vector<std::string> warnings_;
};

TEST(ConvertNames, TakeTheExtensionOfAFormatOff) {
  EXPECT_EQ(renamed("a/layer.bin", FileFormat::kNpy), "a/layer.npy");
  EXPECT_EQ(renamed("a/Add.Add_2.44.6.17", FileFormat::kTorch), "a/Add.Add_2.44.6.17.pth");
}

TEST_F(ConvertFiles, EachTensorOfAnOperationBecomesAFileWhereOneHoldsOne) {
  const std::string from = folder_.write("Add.x.1.2.3", ge::whole_dump("x", {{1}, {2}}, {{3}}));
  const auto written = convert_file(from, at("add.npy"), FileFormat::kNpy);
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_THAT(*written,
              ElementsAre(at("add.input.0.npy"), at("add.input.1.npy"), at("add.output.0.npy")));
  EXPECT_THAT(values(at("add.input.1.npy")), ElementsAre(2));
}

TEST_F(ConvertFiles, AContainerKeepsTheNames) {
  const std::string from = folder_.write("Add.x.1.2.3", ge::whole_dump("x", {{1}, {2}}, {{3}}));
  for (const FileFormat format : {FileFormat::kNpz, FileFormat::kTorch, FileFormat::kSafetensors}) {
    const std::string to = at("all" + std::string(extension_of(format)));
    ASSERT_TRUE(convert_file(from, to, format));
    EXPECT_THAT(values(to, "input_1"), ElementsAre(2));
    EXPECT_THAT(values(to, "output_0"), ElementsAre(3));
  }
}

TEST_F(ConvertFiles, ACutFileIsAnError) {
  const std::string whole = ge::whole_dump("x", {{1}}, {{3}});
  const std::string from = folder_.write("Add.x.1.2.3", whole.substr(0, whole.size() - 1));
  const auto written = convert_file(from, at("add.npz"), FileFormat::kNpz);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().text(), HasSubstr("output_0"));
}

TEST_F(ConvertFiles, ATreeKeepsItsFolders) {
  folder_.write("from/a/Add.x.1.2.3", ge::whole_dump("x", {}, {{3}}));
  folder_.write("from/b/graph.txt", "a graph");
  const auto counts = convert_tree(at("from"), at("to"), FileFormat::kTorch, stop_,
                                   [&](const Error& error) { warnings_.push_back(error.text()); });
  ASSERT_TRUE(counts) << counts.error().text();
  EXPECT_EQ(counts->files, 1U);
  EXPECT_EQ(counts->others, 1U);
  EXPECT_THAT(warnings_, ElementsAre());
  EXPECT_THAT(values(at("to/a/Add.x.1.2.3.pth"), "output_0"), ElementsAre(3));
}

TEST_F(ConvertFiles, ATreeIsNotConvertedIntoItself) {
  folder_.write("from/a/Add.x.1.2.3", ge::whole_dump("x", {}, {{3}}));
  for (const char* to : {"from", "from/new", "from/../from/a"})
    EXPECT_FALSE(convert_tree(at("from"), at(to), FileFormat::kNpy, stop_, [](const Error&) {}));
}

}  // namespace
}  // namespace ait::convert
