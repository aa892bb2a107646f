// The library asks and tells its probe in the order and with the arguments that probes of ATB rely
// on. This program is the probe.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <map>

#include "atb/probe.h"
#include "tensors.h"

namespace {

std::vector<std::string> calls;            // what was asked and told, in order
std::map<std::string, bool> answers;       // by function name; no where there is none
std::map<std::string, std::string> texts;  // last long argument by function and operation

std::string joined(const std::vector<int64_t>& ids) {
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : "_") + std::to_string(id);
  return text;
}

bool Asked(const std::string& name, const std::string& arguments = "") {
  calls.push_back(name + (arguments.empty() ? "" : " " + arguments));
  const auto found = answers.find(name);
  return found != answers.end() && found->second;
}

// Without the process id, which differs from run to run.
std::string Plain(std::string path) {
  const std::string pid = "_" + std::to_string(getpid()) + "/";
  if (const size_t at = path.find(pid); at != std::string::npos)
    path.replace(at, pid.size(), "_P/");
  return path;
}

std::string Described(const std::vector<atb::Probe::Tensor>& tensors) {
  std::string text;
  for (const auto& t : tensors)
    text += "(" + t.dtype + " " + t.format + " " + t.shape + " " + Plain(t.filePath) + ")";
  return text;
}

}  // namespace

namespace atb {

bool Probe::IsTensorNeedSave(const std::vector<int64_t>& ids, const std::string& type) {
  return Asked("IsTensorNeedSave", joined(ids) + " " + type);
}
bool Probe::IsSaveTensorData() { return Asked("IsSaveTensorData"); }
bool Probe::IsSaveTensorDesc() { return Asked("IsSaveTensorDesc"); }
bool Probe::IsExecuteCountInRange(const uint64_t count) {
  return Asked("IsExecuteCountInRange", std::to_string(count));
}
bool Probe::IsSaveTensorBefore() { return Asked("IsSaveTensorBefore"); }
bool Probe::IsSaveTensorAfter() { return Asked("IsSaveTensorAfter"); }
void Probe::SaveTensor(const std::string& format, const std::string& dtype, const std::string& dims,
                       const void* data, uint64_t size, const std::string& path) {
  calls.push_back("SaveTensor " + format + " " + dtype + " " + dims + " " + std::to_string(size) +
                  " " + Plain(path));
  EXPECT_NE(data, nullptr);
}
bool Probe::IsSaveTiling() { return Asked("IsSaveTiling"); }
void Probe::SaveTiling(const uint8_t* bytes, uint64_t size, const std::string& path) {
  calls.push_back("SaveTiling " + Plain(path));
  EXPECT_NE(bytes, nullptr);
  EXPECT_GT(size, 0u);
}
void Probe::SaveParam(const std::string& param, const std::string& path) {
  calls.push_back("SaveParam " + Plain(path));
  texts["SaveParam " + Plain(path)] = param;
}
bool Probe::IsSaveParam() { return Asked("IsSaveParam"); }
bool Probe::ReportOperationIOTensorEnable() { return Asked("ReportOperationIOTensorEnable"); }
void Probe::ReportOperationIOTensor(const size_t count, const std::string& name,
                                    const std::string& param, const std::vector<Probe::Tensor>& in,
                                    const std::vector<Probe::Tensor>& out) {
  calls.push_back("ReportOperationIOTensor " + std::to_string(count) + " " + name);
  texts["ReportOperationIOTensor " + name] = param + Described(in) + "->" + Described(out);
}
bool Probe::ReportOperationStatisticEnable() { return Asked("ReportOperationStatisticEnable"); }
void Probe::ReportOperationSetupStatistic(const size_t count, const std::string& name,
                                          const std::string& text) {
  calls.push_back("ReportOperationSetupStatistic " + std::to_string(count) + " " + name);
  texts["setup"] = text;
}
void Probe::ReportOperationExecuteStatistic(const size_t count, const std::string& name,
                                            const std::string& text) {
  calls.push_back("ReportOperationExecuteStatistic " + std::to_string(count) + " " + name);
  texts["execute"] = text;
}
bool Probe::ReportKernelIOTensorEnable() { return Asked("ReportKernelIOTensorEnable"); }
void Probe::ReportKernelIOTensor(const size_t count, const std::string& name, const std::string&,
                                 const std::vector<Probe::Tensor>& in,
                                 const std::vector<Probe::Tensor>& out) {
  calls.push_back("ReportKernelIOTensor " + std::to_string(count) + " " + name);
  texts["ReportKernelIOTensor"] = Described(in) + "->" + Described(out);
}
bool Probe::ReportOperationGraphEnable() { return Asked("ReportOperationGraphEnable"); }
void Probe::ReportOperationGraph(const std::string& name, const std::string& graph) {
  calls.push_back("ReportOperationGraph " + name);
  texts["graph"] = graph;
}
bool Probe::IsOverflowCheck() { return Asked("IsOverflowCheck"); }
bool Probe::IsOverflowStop() { return Asked("IsOverflowStop"); }
void Probe::ReportOverflowKernel(const std::string& where) {
  calls.push_back("ReportOverflowKernel " + where);
}
void Probe::UpdateConfig() { calls.push_back("UpdateConfig"); }
bool Probe::IsSaveTensorInSpecificDir(const std::string& folder) {
  return Asked("IsSaveTensorInSpecificDir", Plain(folder));
}

}  // namespace atb

namespace {

using atb_test::MakeNested;
using atb_test::Values;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

class ProbeOrder : public testing::Test {
 protected:
  ProbeOrder() {
    answers = {{"IsSaveTensorInSpecificDir", true}};
    calls.clear();
    texts.clear();
  }

  void SetUpOperation() {
    uint64_t bytes = 0;
    const auto status = operation_->Setup(pack_, bytes, context_);
    ASSERT_TRUE(status.ok()) << status.message();
    workspace_.resize(bytes);
  }
  atb::Status Execute() {
    return operation_->Execute(pack_, workspace_.data(), workspace_.size(), context_);
  }
  // The calls that `body` makes.
  template <class Body>
  static Lines CallsOf(const Body& body) {
    calls.clear();
    body();
    return calls;
  }
  // Ids count on over all tests of the process.
  static std::string id_of(const Lines& setup_calls) {
    for (const std::string& call : setup_calls)
      if (call.ends_with(" Outer") && call.starts_with("IsTensorNeedSave "))
        return call.substr(17, call.size() - 17 - 6);
    return "?";
  }

  Values x_{{2, 8}}, w_{{3, 8}}, z_{{2, 3}}, y_{{2, 3}};
  std::unique_ptr<atb::Operation> operation_ = MakeNested();
  atb::VariantPack pack_{{x_.tensor(), w_.tensor(), z_.tensor()}, {y_.tensor()}};
  std::vector<uint8_t> workspace_;
  atb::Context context_{3};
};

TEST_F(ProbeOrder, FirstSetupAsksChildrenBeforeParentsAndReportsTheGraphOnce) {
  answers["ReportOperationGraphEnable"] = true;
  answers["IsSaveTensorDesc"] = true;
  const Lines first = CallsOf([&] { SetUpOperation(); });
  const std::string id = id_of(first);
  EXPECT_THAT(first,
              ElementsAre("IsTensorNeedSave " + id + "_0 LinearOperation",
                          "IsTensorNeedSave " + id + "_1 ElewiseOperation",
                          "IsTensorNeedSave " + id + "_2_0 ElewiseOperation",
                          "IsTensorNeedSave " + id + "_2 Inner", "ReportOperationGraphEnable",
                          "ReportOperationGraph Outer_" + id, "IsTensorNeedSave " + id + " Outer",
                          "IsSaveTensorDesc",
                          // kernels, with their operation's name; each runner's end, children first
                          "IsTensorNeedSave " + id + "_0_0 LinearOperation", "UpdateConfig",
                          "IsTensorNeedSave " + id + "_1_0 ElewiseOperation", "UpdateConfig",
                          "IsTensorNeedSave " + id + "_2_0_0 ElewiseOperation", "UpdateConfig",
                          "UpdateConfig", "UpdateConfig", "ReportOperationStatisticEnable"));
  const Lines second = CallsOf([&] { SetUpOperation(); });
  EXPECT_THAT(second, ElementsAre("IsTensorNeedSave " + id + " Outer", "IsSaveTensorDesc",
                                  "IsSaveTiling", "UpdateConfig", "IsSaveTiling", "UpdateConfig",
                                  "IsSaveTiling", "UpdateConfig", "UpdateConfig", "UpdateConfig",
                                  "ReportOperationStatisticEnable"));
}

TEST_F(ProbeOrder, IdsCountUpInOrderOfFirstSetup) {
  const int first = std::stoi(id_of(CallsOf([&] { SetUpOperation(); })));
  operation_ = MakeNested();
  EXPECT_EQ(std::stoi(id_of(CallsOf([&] { SetUpOperation(); }))), first + 1);
}

TEST_F(ProbeOrder, GraphJsonHasAtbsKeysSortedAndTensorIds) {
  answers["ReportOperationGraphEnable"] = true;
  const std::string id = id_of(CallsOf([&] { SetUpOperation(); }));
  const std::string add =
      R"("param":{"elewiseType":8,"mulsParam":{"varAttr":0.0},"outTensorType":-1,"quantParam":{"asymmetric":false,"inputOffset":0,"inputScale":1.0}}})";
  EXPECT_EQ(
      texts["graph"],
      R"({"inTensorNum":3,"internalTensorNum":2,"nodes":[)"
      R"({"inTensorIds":[0,1],"inTensorNum":2,"opName":"LinearOperation_)" +
          id +
          R"(_0","opType":"LinearOperation","outTensorIds":[4],"outTensorNum":1,"param":)"
          R"({"enAccum":false,"hasBias":false,"matmulType":0,"outDataType":-1,"quantMode":0,"transposeA":false,"transposeB":true}},)"
          R"({"inTensorIds":[4,2],"inTensorNum":2,"opName":"ElewiseOperation_)" +
          id + R"(_1","opType":"ElewiseOperation","outTensorIds":[5],"outTensorNum":1,)" + add +
          R"(,{"inTensorIds":[5],"inTensorNum":1,"internalTensorNum":0,"nodes":[)"
          R"({"inTensorIds":[0,0],"inTensorNum":2,"opName":"ElewiseOperation_)" +
          id + R"(_2_0","opType":"ElewiseOperation","outTensorIds":[1],"outTensorNum":1,)" + add +
          R"(],"opName":"Inner_)" + id +
          R"(_2","opType":"Inner","outTensorIds":[3],"outTensorNum":1,"param":""}],"opName":"Outer_)" +
          id + R"(","opType":"Outer","outTensorNum":1,"param":""})");
}

TEST_F(ProbeOrder, ExecuteAsksForEveryRunnerAndKernelInOrder) {
  SetUpOperation();
  const Lines told = CallsOf([&] { EXPECT_TRUE(Execute().ok()); });
  const Lines runner_end{"IsExecuteCountInRange 0", "IsExecuteCountInRange 0",
                         "ReportOperationIOTensorEnable"};
  Lines expected;
  const auto add = [&](const Lines& lines) {
    expected.insert(expected.end(), lines.begin(), lines.end());
  };
  const auto leaf = [&] {
    add({"IsExecuteCountInRange 0", "IsOverflowCheck", "ReportKernelIOTensorEnable"});
    add(runner_end);
  };
  add({"IsExecuteCountInRange 0"});  // Outer, before
  leaf();
  leaf();
  add({"IsExecuteCountInRange 0"});  // Inner, before
  leaf();
  add(runner_end);
  add(runner_end);
  add({"ReportOperationStatisticEnable"});
  EXPECT_THAT(told, ElementsAreArray(expected));
}

TEST_F(ProbeOrder, SavesInputsThenOutputsBeforeAndAfterRunnersAndKernels) {
  for (const char* yes :
       {"IsTensorNeedSave", "IsSaveTensorDesc", "IsSaveTensorData", "IsExecuteCountInRange",
        "IsSaveTensorBefore", "IsSaveTensorAfter", "IsSaveParam"})
    answers[yes] = true;
  const std::string id = id_of(CallsOf([&] { SetUpOperation(); }));
  const Lines told = CallsOf([&] { EXPECT_TRUE(Execute().ok()); });
  Lines saved;
  for (const std::string& call : told)
    if (call.starts_with("Save")) saved.push_back(call);
  const std::string outer = "3_P/0/" + id + "_Outer";
  const std::string linear = outer + "/0_LinearOperation", kernel = linear + "/0_MatMulF32Kernel";
  const auto linear_tensors = [](const std::string& folder) {
    return Lines{"SaveTensor 2 0 2,8 64 " + folder + "/intensor0.bin",
                 "SaveTensor 2 0 3,8 96 " + folder + "/intensor1.bin",
                 "SaveTensor 2 0 2,3 24 " + folder + "/outtensor0.bin"};
  };
  Lines expected{"SaveTensor 2 0 2,8 64 " + outer + "/before/intensor0.bin",
                 "SaveTensor 2 0 3,8 96 " + outer + "/before/intensor1.bin",
                 "SaveTensor 2 0 2,3 24 " + outer + "/before/intensor2.bin",
                 "SaveTensor 2 0 2,3 24 " + outer + "/before/outtensor0.bin"};
  for (const std::string& folder :
       {linear + "/before", kernel + "/before", kernel + "/after", linear + "/after"}) {
    const Lines own = linear_tensors(folder);
    expected.insert(expected.end(), own.begin(), own.end());
  }
  expected.push_back("SaveParam " + linear + "/op_param.json");
  ASSERT_GE(saved.size(), expected.size());
  EXPECT_THAT(Lines(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(expected.size())),
              ElementsAreArray(expected));
  EXPECT_THAT(texts["SaveParam " + linear + "/op_param.json"], HasSubstr(R"("transposeB":true)"));
  EXPECT_THAT(told, testing::Not(testing::Contains(HasSubstr("SaveParam " + outer + "/op_param"))));
  EXPECT_THAT(told, testing::Contains("IsSaveTensorInSpecificDir " + kernel));
  // The second round goes to the next folder.
  SetUpOperation();
  EXPECT_THAT(CallsOf([&] { EXPECT_TRUE(Execute().ok()); }),
              testing::Contains(HasSubstr("3_P/1/" + id +
                                          "_Outer/2_Inner/0_ElewiseOperation/"
                                          "0_AddF32Kernel/after/outtensor0.bin")));
}

TEST_F(ProbeOrder, TilingIsSavedInSetupForEveryKernel) {
  for (const char* yes :
       {"IsTensorNeedSave", "IsSaveTensorDesc", "IsExecuteCountInRange", "IsSaveTiling"})
    answers[yes] = true;
  const Lines told = CallsOf([&] { SetUpOperation(); });
  const std::string id = id_of(told);
  const std::string outer = "3_P/0/" + id + "_Outer";
  EXPECT_THAT(
      told,
      testing::IsSupersetOf(
          {"SaveTiling " + outer + "/0_LinearOperation/0_MatMulF32Kernel/kernel_tilingdata.bin",
           "SaveTiling " + outer + "/1_ElewiseOperation/0_AddF32Kernel/kernel_tilingdata.bin",
           "SaveTiling " + outer +
               "/2_Inner/0_ElewiseOperation/0_AddF32Kernel/kernel_tilingdata.bin"}));
}

TEST_F(ProbeOrder, TablesGetDescriptionsOfLeavesOnly) {
  answers["ReportOperationIOTensorEnable"] = answers["ReportKernelIOTensorEnable"] = true;
  answers["IsSaveTensorDesc"] = true;
  const std::string id = id_of(CallsOf([&] { SetUpOperation(); }));
  const Lines told = CallsOf([&] { EXPECT_TRUE(Execute().ok()); });
  Lines reports;
  for (const std::string& call : told)
    if (call.starts_with("ReportOperationIOTensor ") || call.starts_with("ReportKernelIOTensor "))
      reports.push_back(call);
  EXPECT_THAT(reports, ElementsAre("ReportKernelIOTensor 0 LinearOperation",
                                   "ReportOperationIOTensor 0 LinearOperation_" + id + "_0",
                                   "ReportKernelIOTensor 0 ElewiseOperation",
                                   "ReportOperationIOTensor 0 ElewiseOperation_" + id + "_1",
                                   "ReportKernelIOTensor 0 ElewiseOperation",
                                   "ReportOperationIOTensor 0 ElewiseOperation_" + id + "_2_0"));
  const std::string& text = texts["ReportOperationIOTensor LinearOperation_" + id + "_0"];
  EXPECT_THAT(text, HasSubstr(R"({"enAccum":false)"));
  EXPECT_THAT(text, HasSubstr("(float nd 2,8 3_P/0/" + id +
                              "_Outer/0_LinearOperation/after/intensor0.bin)"));
}

TEST_F(ProbeOrder, StatisticsHaveAtbsKeys) {
  answers["ReportOperationStatisticEnable"] = true;
  const std::string id = id_of(CallsOf([&] { SetUpOperation(); }));
  EXPECT_EQ(calls.back(), "ReportOperationSetupStatistic 0 Outer_" + id);
  EXPECT_TRUE(Execute().ok());
  EXPECT_EQ(calls.back(), "ReportOperationExecuteStatistic 0 Outer_" + id);
  const auto keys = [](const std::string& text) {
    Lines found;
    for (size_t at = 0; at < text.size();) {
      const size_t colon = text.find(':', at), comma = std::min(text.find(", ", at), text.size());
      found.push_back(text.substr(at, colon - at));
      at = comma + 2;
    }
    return found;
  };
  EXPECT_THAT(
      keys(texts["setup"]),
      ElementsAre("totalTime", "runnerCreateTime", "runnerSetupTime", "runnerFillHostTilingTime",
                  "setupTotalCount", "setupCacheHitCount", "setupCacheMissCount",
                  "opsInitLuanchBufferTime", "tilingCacheHitCount", "tilingCacheMissCount",
                  "tilingLocalCacheHitCount", "tilingGlobalCacheHitCount",
                  "kernelCacheGetTilingTime", "kernelCacheAddTilingTime",
                  "kernelCacheCompareRunInfoTime", "kernelCacheGetRunInfoTime"));
  EXPECT_THAT(texts["setup"], HasSubstr("setupCacheMissCount:3"));
  EXPECT_THAT(keys(texts["execute"]),
              ElementsAre("totalTime", "streamSyncTime", "tillingCopyTime", "kernelExecuteTime",
                          "launchTime", "preLaunchTime"));
  SetUpOperation();
  EXPECT_THAT(texts["setup"], HasSubstr("setupCacheHitCount:3"));
}

TEST_F(ProbeOrder, OverflowIsReportedAndStopsOnlyWhenAskedTo) {
  answers["IsOverflowCheck"] = true;
  const std::string id = id_of(CallsOf([&] { SetUpOperation(); }));
  z_.data[4] = HUGE_VALF;
  Lines told = CallsOf([&] { EXPECT_TRUE(Execute().ok()); });
  const auto reports = [&] {
    Lines found;
    for (const std::string& call : told)
      if (call.starts_with("ReportOverflowKernel")) found.push_back(call);
    return found;
  };
  EXPECT_THAT(reports(),
              ElementsAre("ReportOverflowKernel ElewiseOperation_" + id + "_1:AddF32Kernel",
                          "ReportOverflowKernel ElewiseOperation_" + id + "_2_0:AddF32Kernel"));
  answers["IsOverflowStop"] = true;
  SetUpOperation();
  told = CallsOf([&] { EXPECT_EQ(Execute().code(), atb::ErrorType::kRtFail); });
  EXPECT_THAT(reports(),
              ElementsAre("ReportOverflowKernel ElewiseOperation_" + id + "_1:AddF32Kernel"));
}

TEST_F(ProbeOrder, NanIsNoOverflow) {
  answers["IsOverflowCheck"] = true;
  SetUpOperation();
  z_.data[4] = std::nanf("");
  EXPECT_THAT(CallsOf([&] { EXPECT_TRUE(Execute().ok()); }),
              testing::Not(testing::Contains(HasSubstr("ReportOverflowKernel"))));
}

TEST(ProbeContext, AsksForOverflowChecksWhenItComesAndGoes) {
  calls.clear();
  {
    const atb::Context context(0);
  }
  EXPECT_THAT(calls, ElementsAre("IsOverflowCheck", "IsOverflowCheck"));
}

}  // namespace
