#include "opcheck/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ait::opcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string complaint(const Words& words) {
  const auto request = understand(words);
  return request ? "understood" : request.error().text();
}

TEST(Request, OfNoWordsIsAllOperationsAsTheyWereRecorded) {
  const auto request = understand({});
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->search.ids.empty() && request->fail_on.empty() && request->again.empty());
  EXPECT_EQ(request->options.precision, Precision::kAsRecorded);
  EXPECT_EQ(request->options.memory_bytes, 0u);
  EXPECT_FALSE(request->rerun);
  EXPECT_TRUE(request->search.needs_outputs);
}

TEST(Request, OfIdsIsNumbersWithLinesBetweenThem) {
  const auto request = understand({.ids = {"24_1", "2_3_5", "0"}});
  ASSERT_TRUE(request);
  EXPECT_THAT(request->search.ids,
              ElementsAre(ElementsAre(24, 1), ElementsAre(2, 3, 5), ElementsAre(0)));
  for (const char* wrong : {"", "_", "1_", "_1", "1__2", "a", "1-2", "-1", "99999999999999999999"})
    EXPECT_THAT(complaint({.ids = {wrong}}), HasSubstr("give ids as 24_1,2_3_5")) << wrong;
}

TEST(Request, KnowsTheDocumentsMetricsAndPrecisions) {
  const Metrics metrics = understand({.metrics = {"kl", "abs"}})->options.metrics;
  EXPECT_TRUE(metrics.kl && metrics.absolute && !metrics.cosine);
  EXPECT_TRUE(understand({.metrics = {"cos_sim"}})->options.metrics.cosine);
  EXPECT_THAT(complaint({.metrics = {"cos"}}), HasSubstr("give abs, cos_sim or kl"));
  const auto precision = [](const char* word) {
    return understand({.precision = word})->options.precision;
  };
  EXPECT_EQ(precision("keep_origin_dtype"), Precision::kAsRecorded);
  EXPECT_EQ(precision("force_fp16"), Precision::kFloat16);
  EXPECT_EQ(precision("force_fp32"), Precision::kFloat32);
  EXPECT_THAT(complaint({.precision = "fp16"}), HasSubstr("force_fp16 or force_fp32"));
  EXPECT_THAT(understand({.fail_on = {"bound"}})->fail_on, ElementsAre(FailOn::kBound));
  EXPECT_THAT(complaint({.fail_on = {"x"}}), HasSubstr("give failed, bound or unchecked"));
}

TEST(Request, OfMemoryIsGibibytesForGoldensAndForLibraries) {
  const auto request = understand({.memory = "0.5"});
  EXPECT_EQ(request->options.memory_bytes, size_t{1} << 29);
  EXPECT_EQ(request->library.memory_bytes, size_t{1} << 29);
  for (const char* wrong : {"0", "-1", "nan", "inf", "8G", "1e99", " 8"})
    EXPECT_THAT(complaint({.memory = wrong}), HasSubstr("a number of GiB")) << wrong;
}

TEST(Request, OfADeviceIsANumber) {
  EXPECT_EQ(understand({.device = "7"})->library.device, 7);
  for (const char* wrong : {"x", "-1", "1.5", "99999999999"})
    EXPECT_THAT(complaint({.device = wrong}), HasSubstr("is an invalid int value")) << wrong;
}

TEST(Request, RepeatsForOneOperationWhatChangesItsResult) {
  const auto request = understand({.search = {.folder = "dump", .table = "t.csv"},
                                   .ids = {"1"},
                                   .metrics = {"kl"},
                                   .precision = "force_fp32",
                                   .rerun = true,
                                   .plugin = "libmine.so",
                                   .rerun_seconds = 5});
  ASSERT_TRUE(request);
  EXPECT_THAT(request->again, ElementsAre("-c", "t.csv", "-pmode", "force_fp32", "-rerun",
                                          "--rerun-plugin", "libmine.so"));
  EXPECT_EQ(request->library.limit, std::chrono::seconds(5));
  EXPECT_FALSE(request->search.needs_outputs);
  EXPECT_THAT(complaint({.plugin = "libmine.so"}), HasSubstr("--rerun-plugin is for -rerun"));
}

}  // namespace
}  // namespace ait::opcheck
