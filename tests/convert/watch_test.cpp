#include "convert/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

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
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_.path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
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
  const auto path_of = [](const std::string& path) {
    return statistics_path(path, StatisticsKind::kExtremes);
  };
  for (const char* name :
       {"x_min_max.npy", "x_min_max.npz", "x_stat.csv", "mapping.csv", "x.csv", "x.json", "x.tmp",
        "x.txt", "x.swp", ".x.npy", "Opdebug.Node_OpDebug.1.2.3", "x.pth", "x.bin"})
    EXPECT_FALSE(path_of(std::string("a/") + name)) << name;
  EXPECT_EQ(path_of("a/x.npy"), "a/x_min_max.npy");
  EXPECT_EQ(path_of("a/Add.x.1.2.3"), "a/Add.x.1.2.3_min_max.npz");
  EXPECT_EQ(path_of("a/1234567"), "a/1234567_min_max.npz");
  EXPECT_EQ(statistics_path("a/x.npy", StatisticsKind::kTable), "a/x_stat.csv");
  EXPECT_EQ(statistics_path("a/Add.x.1.2.3", StatisticsKind::kTable), "a/Add.x.1.2.3_stat.csv");
}

TEST_F(Converting, WritesBesideAndKeepsTheOriginal) {
  folder_.write(std::string("0/") + kName, kDump);
  pass_once({});
  const std::string made = std::string("0/") + kName + "_min_max.npz";
  EXPECT_THAT(names(), UnorderedElementsAre(std::string("0/") + kName, made));
  EXPECT_THAT(rows(made, "input_0"), ElementsAre(-1, 3));
  EXPECT_THAT(rows(made, "input_1"), ElementsAre(5, 5));
  EXPECT_THAT(rows(made, "output_0"), ElementsAre(2, 4));
  EXPECT_EQ(counts_.converted, 1U);
  pass_once({});
  EXPECT_EQ(counts_.converted, 0U);
}

TEST_F(Converting, WritesATableOfMoreStatistics) {
  folder_.write(kName, kDump);
  pass_once({.kind = StatisticsKind::kTable, .delete_source = true});
  const std::string made = std::string(kName) + "_stat.csv";
  EXPECT_THAT(names(), ElementsAre(made));
  EXPECT_EQ(text_of(made),
            "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\r\n"
            "Add_2,Add,Input,0,float32,\"(2,)\",3.0,-1.0,1.0,3.1622777,input_0\r\n"
            "Add_2,Add,Input,1,float32,\"(1,)\",5.0,5.0,5.0,5.0,input_1\r\n"
            "Add_2,Add,Output,0,float32,\"(2,)\",4.0,2.0,3.0,4.472136,output_0\r\n");
  EXPECT_TRUE(has_statistics((folder_.path() / made).string()));
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

// A child converts, and is killed at points that are spread over the time that its work takes.
TEST_F(Converting, KilledAtAnyPointItLosesNothing) {
  constexpr size_t kFiles = 24;
  constexpr int kKills = 40;
  const auto name_of = [](size_t i) { return "Add.Add_" + std::to_string(i) + ".1.2.3"; };
  const auto dump_of = [](size_t i) {
    return ge::whole_dump("Add", {{static_cast<float>(i), -1}}, {{static_cast<float>(i)}});
  };
  const std::string root = folder_.path().string();
  auto work_time = std::chrono::microseconds(20'000);
  std::mt19937 generator(3);
  size_t killed = 0;
  size_t half_done = 0;
  for (int round = 0; round < kKills; ++round) {
    for (size_t i = 0; i < kFiles; ++i) {
      fs::remove(folder_.path() / (name_of(i) + "_min_max.npz"));
      folder_.write(name_of(i), dump_of(i));
    }
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = ::fork();
    if (child == 0) {
      StatisticsConverter converter(root, {.delete_source = true});
      const auto done = converter.pass(stop_, [](const Error&) { ::_exit(2); });
      ::_exit(done && converter.counts().deleted == kFiles ? 0 : 1);
    }
    if (round > 0)  // the first one is not killed: it shows how long it takes
      std::this_thread::sleep_for(work_time * (generator() % 1000) / 1000);
    if (round > 0) ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (round == 0)
      work_time = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start);
    killed += WIFSIGNALED(status) ? 1 : 0;
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    size_t converted = 0;
    for (size_t i = 0; i < kFiles; ++i) {
      const std::string made = name_of(i) + "_min_max.npz";
      if (!fs::exists(folder_.path() / made)) {
        ASSERT_EQ(text_of(name_of(i)), dump_of(i)) << name_of(i);
        continue;
      }
      ++converted;
      ASSERT_THAT(rows(made, "input_0"), ElementsAre(-1, static_cast<float>(i)));
      ASSERT_THAT(rows(made, "output_0"), ElementsAre(i, i));
    }
    half_done += converted > 0 && converted < kFiles ? 1 : 0;
  }
  EXPECT_GT(killed, size_t{kKills / 4});
  EXPECT_GT(half_done, 0U);
  // What the last one left is finished by the next.
  pass_once({.delete_source = true});
  for (size_t i = 0; i < kFiles; ++i) {
    EXPECT_FALSE(fs::exists(folder_.path() / name_of(i)));
    EXPECT_THAT(rows(name_of(i) + "_min_max.npz", "output_0"), ElementsAre(i, i));
  }
  for (const std::string& name : names()) EXPECT_TRUE(name.ends_with(".npz") || name[0] == '.');
}

TEST_F(Converting, ManyFilesAreConvertedOnceEach) {
  constexpr size_t kFiles = 600;
  for (size_t i = 0; i < kFiles; ++i)
    folder_.write(std::to_string(i % 3) + "/Add.Add_" + std::to_string(i) + ".1.2.3", kDump);
  pass_once({.delete_source = true});
  EXPECT_EQ(counts_.converted, kFiles);
  EXPECT_EQ(counts_.deleted, kFiles);
  EXPECT_EQ(names().size(), kFiles);
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
