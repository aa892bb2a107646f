#include "convert/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/statistics.h"
#include "formats/registry.h"
#include "ge_builder.h"

namespace ait::convert {
namespace {

namespace fs = std::filesystem;
namespace ge = formats::ge_builder;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* kName = "Add.Add_2.44.6.1706596912161941";
const std::string kDump = ge::whole_dump("Add_2", {{3, -1}, {5}}, {{2, 4}});

class Converting : public ::testing::Test {
 protected:
  void pass(StatisticsConverter& converter) {
    ASSERT_TRUE(
        converter.pass(stop_, [&](const Error& error) { warnings_.push_back(error.text()); }));
  }
  void pass_once(StatisticsOptions options) {
    StatisticsConverter converter(folder_.path().string(), options);
    pass(converter);
    counts_ = converter.counts();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      if (!entry.is_directory()) out.push_back(entry.path().lexically_relative(folder_.path()));
    return out;
  }
  std::vector<float> rows(const std::string& name, const std::string& member) const {
    const auto tensor = formats::load_single((folder_.path() / name).string(), member);
    return tensor ? formats::values_of<float>(*tensor) : std::vector<float>{};
  }

  formats::TempFolder folder_;
  std::atomic<bool> stop_ = false;
  std::vector<std::string> warnings_;
  StatisticsCounts counts_;
};

TEST(StatisticsPath, LeavesOutWhatIsNoDump) {
  for (const char* name :
       {"x_min_max.npy", "x_min_max.npz", "mapping.csv", "x.csv", "x.json", "x.tmp", "x.txt",
        "x.swp", ".x.npy", "Opdebug.Node_OpDebug.1.2.3", "x.pth", "x.bin"})
    EXPECT_FALSE(statistics_path(std::string("a/") + name)) << name;
  EXPECT_EQ(statistics_path("a/x.npy"), "a/x_min_max.npy");
  EXPECT_EQ(statistics_path("a/Add.x.1.2.3"), "a/Add.x.1.2.3_min_max.npz");
  EXPECT_EQ(statistics_path("a/1234567"), "a/1234567_min_max.npz");
}

TEST_F(Converting, WritesBesideAndKeepsTheOriginal) {
  folder_.write(std::string("0/") + kName, kDump);
  pass_once({});
  const std::string made = std::string("0/") + kName + "_min_max.npz";
  EXPECT_THAT(names(), UnorderedElementsAre(std::string("0/") + kName, made));
  EXPECT_THAT(rows(made, "inputs"), ElementsAre(-1, 3, 5, 5));
  EXPECT_THAT(rows(made, "outputs"), ElementsAre(2, 4));
  EXPECT_EQ(counts_.converted, 1U);
  pass_once({});
  EXPECT_EQ(counts_.converted, 0U);
}

TEST_F(Converting, DeletesTheOriginalWhenAsked) {
  folder_.write(kName, kDump);
  pass_once({.delete_source = true});
  EXPECT_THAT(names(), ElementsAre(std::string(kName) + "_min_max.npz"));
  EXPECT_EQ(counts_.deleted, 1U);
}

TEST_F(Converting, DeletesWhatAKilledProcessHadConverted) {
  folder_.write(kName, kDump);
  pass_once({});
  pass_once({.delete_source = true});
  EXPECT_THAT(names(), ElementsAre(std::string(kName) + "_min_max.npz"));
  EXPECT_EQ(counts_.converted, 0U);
  EXPECT_EQ(counts_.deleted, 1U);
}

TEST_F(Converting, ConvertsAgainWhereTheStatisticsAreDamaged) {
  folder_.write(kName, kDump);
  const std::string made = folder_.write(std::string(kName) + "_min_max.npz", "PK\3\4");
  pass_once({.delete_source = true});
  EXPECT_EQ(counts_.converted, 1U);
  EXPECT_TRUE(has_statistics(made));
}

TEST_F(Converting, AFileOfALiveDumpMustRestForAPass) {
  StatisticsConverter converter(folder_.path().string(), {.delete_source = true, .is_live = true});
  folder_.write(kName, kDump.substr(0, kDump.size() - 3));
  pass(converter);
  pass(converter);
  EXPECT_THAT(names(), ElementsAre(kName));  // not complete
  folder_.write(kName, kDump);
  pass(converter);
  EXPECT_THAT(names(), ElementsAre(kName));  // complete, but it has just grown
  pass(converter);
  EXPECT_THAT(names(), ElementsAre(std::string(kName) + "_min_max.npz"));
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(Converting, AFileThatStaysCutIsWarnedOfOnceAndLeft) {
  StatisticsConverter converter(folder_.path().string(), {.delete_source = true, .is_live = true});
  folder_.write(kName, kDump.substr(0, kDump.size() - 3));
  for (int i = 0; i < 50; ++i) pass(converter);
  EXPECT_THAT(names(), ElementsAre(kName));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("cut short")));
  EXPECT_EQ(converter.counts().left, 1U);
}

TEST_F(Converting, LinksAreLeftAlone) {
  const formats::TempFolder elsewhere;
  const std::string real = elsewhere.write(kName, kDump);
  fs::create_symlink(real, folder_.path() / kName);
  pass_once({.delete_source = true});
  EXPECT_THAT(names(), ElementsAre(kName));
  EXPECT_TRUE(fs::exists(real));
}

TEST_F(Converting, StopsBeforeTheNextFile) {
  folder_.write(kName, kDump);
  stop_ = true;
  pass_once({.delete_source = true});
  EXPECT_THAT(names(), ElementsAre(kName));
}

TEST_F(Converting, SaysThatAFolderIsMissing) {
  StatisticsConverter converter((folder_.path() / "missing").string(), {});
  const auto done = converter.pass(stop_, [](const Error&) {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().text(), HasSubstr("missing"));
}

}  // namespace
}  // namespace ait::convert
