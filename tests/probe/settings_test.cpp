#include "settings.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace ait::probe {
namespace {

std::map<std::string, std::string> environment;

const char* get(const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

// Settings are read once and never given back; kept where they can be reached, they are no leaks.
const Settings& with(std::map<std::string, std::string> variables) {
  static auto& kept = *new std::deque<Settings>;
  environment = std::move(variables);
  return kept.emplace_back(read_settings(get));
}

bool wants(const Settings& settings, const std::vector<int64_t>& ids, std::string_view type = "X") {
  return wants_operation(settings, ids.data(), ids.size(), type, {nullptr, 0}, {nullptr, 0});
}

TEST(ProbeSettings, AreAllOffWithoutAnEnvironment) {
  const Settings settings = with({});
  EXPECT_FALSE(settings.active());
  EXPECT_FALSE(wants(settings, {0}));
  EXPECT_FALSE(wants_round(settings, 0));
  EXPECT_TRUE(settings.after);
  EXPECT_FALSE(settings.before);
}

TEST(ProbeSettings, OutliveTheHostsChangesToItsEnvironment) {
  const Settings settings =
      with({{"ATB_DUMP_TYPE", "tensor"}, {"ATB_SAVE_TENSOR_IDS", "2"}, {"ATB_OUTPUT_DIR", "/o/"}});
  environment.clear();
  EXPECT_TRUE(wants(settings, {2}));
  EXPECT_STREQ(settings.output, "/o");
}

TEST(ProbeSettings, KnowEveryType) {
  const Settings all = with({{"ATB_DUMP_TYPE", "model|layer|op|kernel|tensor|cpu_profiling|onnx"}});
  EXPECT_TRUE(all.models && all.layers && all.operations && all.kernels && all.tensors &&
              all.statistics);
  const Settings one = with({{"ATB_DUMP_TYPE", "kernel"}});
  EXPECT_TRUE(one.kernels);
  EXPECT_FALSE(one.models || one.layers || one.operations || one.tensors || one.statistics);
}

TEST(ProbeSettings, ChooseOperationsByIdWithTheirChildren) {
  const Settings settings = with({{"ATB_DUMP_TYPE", "tensor"}, {"ATB_SAVE_TENSOR_IDS", "2, 3_1"}});
  EXPECT_TRUE(wants(settings, {2}));
  EXPECT_TRUE(wants(settings, {2, 0, 5}));
  EXPECT_TRUE(wants(settings, {3, 1}));
  EXPECT_TRUE(wants(settings, {3, 1, 0}));
  EXPECT_FALSE(wants(settings, {3}));
  EXPECT_FALSE(wants(settings, {3, 10}));
  EXPECT_FALSE(wants(settings, {20}));
  EXPECT_FALSE(wants(settings, {}));
}

TEST(ProbeSettings, ChooseOperationsByIdWithoutChildren) {
  const Settings settings = with(
      {{"ATB_DUMP_TYPE", "tensor"}, {"ATB_SAVE_TENSOR_IDS", "2,3_1"}, {"ATB_SAVE_CHILD", "0"}});
  EXPECT_TRUE(wants(settings, {2}));
  EXPECT_FALSE(wants(settings, {2, 0}));
  EXPECT_FALSE(wants(settings, {3}));
}

TEST(ProbeSettings, ChooseOperationsByTheBeginningOfTheirType) {
  const Settings settings = with({{"ATB_DUMP_TYPE", "tensor"},
                                  {"ATB_SAVE_TENSOR_RUNNER", "self, LINEAR"},
                                  {"ATB_SAVE_TENSOR_IDS", "7"}});
  EXPECT_TRUE(wants(settings, {1, 4}, "SelfAttentionOperation"));
  EXPECT_TRUE(wants(settings, {1}, "linearoperation"));
  EXPECT_FALSE(wants(settings, {1}, "MySelfOperation"));
  EXPECT_TRUE(wants(settings, {7}, "Elewise"));  // either filter is enough
}

TEST(ProbeSettings, NoteWhatOfTheirListsHasMatched) {
  std::string list = "2,99,3_1";
  for (int i = 3; i < 70; ++i) list += ",5";
  const Settings settings = with({{"ATB_DUMP_TYPE", "tensor"},
                                  {"ATB_SAVE_TENSOR_RUNNER", "conv,self,linear"},
                                  {"ATB_SAVE_TENSOR_IDS", list.c_str()}});
  uint64_t ids[2] = {};
  uint64_t names[1] = {};
  const auto ask = [&](std::vector<int64_t> path, const char* type) {
    return wants_operation(settings, path.data(), path.size(), type, {ids, 1}, {names, 1});
  };
  EXPECT_TRUE(ask({2, 0}, "LinearOperation"));
  EXPECT_TRUE(ask({3, 1}, "Elewise"));
  EXPECT_FALSE(ask({3, 2}, "Elewise"));
  EXPECT_EQ(ids[0], 0b101U);
  EXPECT_EQ(names[0], 0b100U);
  EXPECT_TRUE(ask({5}, "SelfAttention"));
  EXPECT_EQ(ids[0], ~uint64_t{0b10});
  EXPECT_EQ(ids[1], 0U);  // there was no room for more
  EXPECT_EQ(names[0], 0b110U);
}

TEST(ProbeSettings, ChooseRoundsByClosedIntervals) {
  const Settings settings =
      with({{"ATB_DUMP_TYPE", "tensor"}, {"ATB_SAVE_TENSOR_RANGE", "3,5,7,7,9"}});
  std::vector<uint64_t> wanted;
  for (uint64_t round = 0; round < 12; ++round)
    if (wants_round(settings, round)) wanted.push_back(round);
  EXPECT_EQ(wanted, (std::vector<uint64_t>{3, 4, 5, 7}));
}

TEST(ProbeSettings, ADryRunLooksAtTheFirstRoundOnly) {
  const Settings settings = with(
      {{"ATB_DUMP_TYPE", "tensor"}, {"ATB_SAVE_TENSOR_RANGE", "3,5,1,1"}, {"AIT_DRY_RUN", "1"}});
  EXPECT_TRUE(wants_round(settings, 3));
  EXPECT_FALSE(wants_round(settings, 4));
  EXPECT_FALSE(wants_round(settings, 1));
}

TEST(ProbeSettings, SurviveNonsense) {
  const Settings settings = with({{"ATB_DUMP_TYPE", "|tensor||what"},
                                  {"ATB_SAVE_TENSOR_RANGE", "99999999999999999999,x,,"},
                                  {"ATB_SAVE_TENSOR_IDS", ",_,2__1,-1,"},
                                  {"ATB_SAVE_TENSOR_RUNNER", ",, "},
                                  {"ATB_SAVE_TENSOR_TIME", "22"},
                                  {"ATB_SAVE_TILING", "yes"}});
  EXPECT_TRUE(settings.tensors);
  EXPECT_FALSE(wants_round(settings, 0));
  EXPECT_FALSE(wants(settings, {2}, ""));
  EXPECT_FALSE(settings.tiling);
}

TEST(ProbeSettings, ChooseInputsAndOutputsByFileNameAlone) {
  const Settings inputs = with({{"ATB_SAVE_TENSOR_PART", "0"}});
  EXPECT_TRUE(wants_part(inputs, "0_1/0/0_outtensorOp/after/intensor0_x.bin"));
  EXPECT_FALSE(wants_part(inputs, "0_1/0/0_intensorOp/after/outtensor0.bin"));
  const Settings outputs = with({{"ATB_SAVE_TENSOR_PART", "1"}});
  EXPECT_TRUE(wants_part(outputs, "0_1/0/0_Op/after/outTensor1.bin"));
  EXPECT_FALSE(wants_part(outputs, "inTensor1.bin"));
}

TEST(ProbeSettings, ChooseTheDeviceByTheFirstNumberOfThePath) {
  const Settings settings = with({{"ATB_DEVICE_ID", "1"}});
  EXPECT_TRUE(wants_device(settings, "1_4711/0/0_Op"));
  EXPECT_FALSE(wants_device(settings, "11_4711/0/0_Op"));
  EXPECT_FALSE(wants_device(settings, "-1_4711/0/0_Op"));
  EXPECT_TRUE(wants_device(with({}), "11_4711/0/0_Op"));
}

}  // namespace
}  // namespace ait::probe
