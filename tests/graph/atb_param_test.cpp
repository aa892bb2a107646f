#include "graph/atb_param.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace ait::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string mistake(const AtbParam& param) {
  const auto read = param.finish();
  return read ? "" : read.error().message();
}

TEST(AtbParam, ReadsEveryKindOfValue) {
  AtbParam param(
      R"({"headNum": 32, "axis":-1, "qkScale":0.08838834764831845, "hasBias":false,
          "backend":"lccl", "perm":[0,2,1], "value":[1.5,-2], "normParam":{"epsilon":9.999999747378752e-06}})");
  EXPECT_EQ(param.integer("headNum", 0), 32);
  EXPECT_EQ(param.integer("axis", 0), -1);
  EXPECT_EQ(param.number("qkScale", 1), 0.08838834764831845);
  EXPECT_EQ(param.number("headNum", 0), 32.0);
  EXPECT_FALSE(param.flag("hasBias", true));
  EXPECT_EQ(param.text("backend", "hccl"), "lccl");
  EXPECT_THAT(param.integers("perm", {}), ElementsAre(0, 2, 1));
  EXPECT_THAT(param.numbers("value", {}), ElementsAre(1.5, -2.0));
  EXPECT_EQ(param.number("normParam.epsilon", 0), 9.999999747378752e-06);
  EXPECT_EQ(mistake(param), "");
}

TEST(AtbParam, MissingAndNullKeysHaveTheDefaultOfTheCaller) {
  AtbParam param(R"({"hcclComm":null})");
  EXPECT_FALSE(param.has("hcclComm"));
  EXPECT_EQ(param.integer("hcclComm", 7), 7);
  EXPECT_EQ(param.number("normParam.epsilon", 1e-5), 1e-5);
  EXPECT_TRUE(param.flag("transposeB", true));
  EXPECT_EQ(param.text("backend", "hccl"), "hccl");
  EXPECT_THAT(param.integers("axes", {1}), ElementsAre(1));
  EXPECT_EQ(param.choice("matmulType", MatmulType::kEinSum), MatmulType::kEinSum);
  EXPECT_EQ(mistake(param), "");
}

TEST(AtbParam, GraphsAndOperationsWithoutParametersHaveNoKeys) {
  for (const char* text : {"", "null", " null ", "\"\"", "{}"}) {
    AtbParam param(text);
    EXPECT_FALSE(param.has("elewiseType")) << text;
    EXPECT_TRUE(param.members().empty()) << text;
    EXPECT_EQ(mistake(param), "") << text;
  }
}

TEST(AtbParam, TakesAnEnumerationByNumberAndByName) {
  AtbParam numbers(R"({"elewiseType":6,"layerType":2,"type":-1,"maskType":3})");
  EXPECT_EQ(numbers.choice("elewiseType", ElewiseType::kUndefined), ElewiseType::kQuant);
  EXPECT_EQ(numbers.choice("layerType", NormLayerType::kUndefined), NormLayerType::kPreNorm);
  EXPECT_EQ(numbers.choice("type", ParallelType::kPureLinear), ParallelType::kUndefined);
  // The same number is another mask to another operation.
  EXPECT_EQ(numbers.choice("maskType", SelfAttentionMaskType::kUndefined),
            SelfAttentionMaskType::kNormCompress);
  EXPECT_EQ(numbers.choice("maskType", PagedAttentionMaskType::kUndefined),
            PagedAttentionMaskType::kSpec);
  EXPECT_EQ(mistake(numbers), "");

  AtbParam names(
      R"({"elewiseType":"ELEWISE_QUANT","layerType":"RMS_NORM_NORM","normParam":{"quantType":"QUANT_UNQUANT"}})");
  EXPECT_EQ(names.choice("elewiseType", ElewiseType::kUndefined), ElewiseType::kQuant);
  EXPECT_EQ(names.choice("layerType", NormLayerType::kUndefined), NormLayerType::kNorm);
  EXPECT_EQ(names.choice("normParam.quantType", NormQuantType::kInt8), NormQuantType::kUndefined);
  EXPECT_EQ(mistake(names), "");
  AtbParam other(R"({"layerType":"LAYER_NORM_POSTNORM"})");
  EXPECT_EQ(other.choice("layerType", NormLayerType::kUndefined), NormLayerType::kPostNorm);
}

// The numbers of the specification, in its order.
TEST(AtbParam, ElementWiseWorkHasTheNumbersOfTheSpecification) {
  const char* kNames[] = {"UNDEFINED",
                          "CAST",
                          "MULS",
                          "COS",
                          "SIN",
                          "NEG",
                          "QUANT",
                          "LOGICAL_NOT",
                          "ADD",
                          "MUL",
                          "REALDIV",
                          "LOGICAL_AND",
                          "LOGICAL_OR",
                          "LESS",
                          "GREATER",
                          "SUB",
                          "EQUAL",
                          "QUANT_PER_CHANNEL",
                          "DEQUANT_PER_CHANNEL",
                          "DYNAMIC_QUANT",
                          "TANH"};
  int number = 0;
  for (const char* name : kNames) {
    const std::string text = R"({"elewiseType":"ELEWISE_)" + std::string(name) + "\"}";
    AtbParam param(text);
    EXPECT_EQ(static_cast<int>(param.choice("elewiseType", ElewiseType::kUndefined)), number++);
    EXPECT_EQ(mistake(param), "") << name;
  }
  EXPECT_EQ(static_cast<int>(ElewiseType::kTanh), 20);
  EXPECT_EQ(static_cast<int>(ElewiseType::kDynamicQuant), 19);
  EXPECT_EQ(static_cast<int>(ActivationType::kSwigluForward), 6);
  EXPECT_EQ(static_cast<int>(ActivationType::kFasterGeluForward), 9);
}

template <typename Enum>
void expect_one_number_for_each_name(Enum any) {
  std::set<std::string_view> names;
  int64_t last = values_of(any).front().number;
  for (const AtbValue& value : values_of(any)) {
    EXPECT_TRUE(names.insert(value.name).second) << value.name;
    EXPECT_TRUE(value.number == last || value.number == last + 1) << value.name;
    last = value.number;
  }
}

TEST(AtbParam, TablesGoByNumberWithoutGapsAndTwins) {
  expect_one_number_for_each_name(ElewiseType::kUndefined);
  expect_one_number_for_each_name(ActivationType::kUndefined);
  expect_one_number_for_each_name(GeluMode::kTanh);
  expect_one_number_for_each_name(MatmulType::kUndefined);
  expect_one_number_for_each_name(LinearQuantMode::kUndefined);
  expect_one_number_for_each_name(ParallelType::kUndefined);
  expect_one_number_for_each_name(ParallelQuantType::kUndefined);
  expect_one_number_for_each_name(AllReduceQuantType::kUndefined);
  expect_one_number_for_each_name(GroupMultiFlag::kUndefined);
  expect_one_number_for_each_name(GroupedMatmulType::kUp);
  expect_one_number_for_each_name(SwigluQuantType::kPerToken);
  expect_one_number_for_each_name(NormLayerType::kUndefined);
  expect_one_number_for_each_name(NormQuantType::kUndefined);
  expect_one_number_for_each_name(DynamicQuantType::kUndefined);
  expect_one_number_for_each_name(NormPrecisionMode::kHighPrecision);
  expect_one_number_for_each_name(NormModelType::kLlama);
  expect_one_number_for_each_name(SelfAttentionCalcType::kUndefined);
  expect_one_number_for_each_name(SelfAttentionMaskType::kUndefined);
  expect_one_number_for_each_name(SelfAttentionKernelType::kDefault);
  expect_one_number_for_each_name(SelfAttentionClampType::kUndefined);
  expect_one_number_for_each_name(SelfAttentionKvCacheCfg::kCaches);
  expect_one_number_for_each_name(SelfAttentionCacheType::kNorm);
  expect_one_number_for_each_name(AttentionQuantType::kUndefined);
  expect_one_number_for_each_name(AttentionScaleType::kTor);
  expect_one_number_for_each_name(AttentionInputLayout::kBsnd);
  expect_one_number_for_each_name(PagedAttentionMaskType::kUndefined);
  expect_one_number_for_each_name(PagedAttentionCalcType::kUndefined);
  expect_one_number_for_each_name(CompressType::kUndefined);
  expect_one_number_for_each_name(LatentMaskType::kUndefined);
  expect_one_number_for_each_name(LatentCalcType::kUndefined);
  expect_one_number_for_each_name(LatentCacheMode::kKvCache);
  expect_one_number_for_each_name(LatentQuantMode::kPerTensorAsymmetric);
  expect_one_number_for_each_name(MaskUseStatusType::kUndefined);
  expect_one_number_for_each_name(RingCalcType::kDefault);
  expect_one_number_for_each_name(RingMaskType::kNoMask);
  expect_one_number_for_each_name(ReshapeKvCacheCfg::kCaches);
  expect_one_number_for_each_name(TransdataType::kUndefined);
  expect_one_number_for_each_name(ReduceType::kUndefined);
  expect_one_number_for_each_name(IndexAddType::kUndefined);
  expect_one_number_for_each_name(ScatterReduction::kNone);
  expect_one_number_for_each_name(SamplingType::kUndefined);
}

TEST(AtbParam, OldDumpsHoldMembersWithoutTheirObject) {
  AtbParam flat(R"({"elewiseType":2,"varAttr":0.5})");
  EXPECT_EQ(flat.number("mulsParam.varAttr", 0), 0.5);
  AtbParam both(R"({"varAttr":0.5,"mulsParam":{"varAttr":2}})");
  EXPECT_EQ(both.number("mulsParam.varAttr", 0), 2.0);
  // Never the other way round: normParam.hasBias is not the operation's.
  AtbParam inside(R"({"normParam":{"hasBias":true}})");
  EXPECT_FALSE(inside.has("hasBias"));
}

TEST(AtbParam, OfTwoValuesTheLastCounts) {
  AtbParam param(R"({"axis":1,"axis":2})");
  EXPECT_EQ(param.integer("axis", 0), 2);
}

TEST(AtbParam, NamesTheKeyWhoseValueIsOfAnotherKind) {
  AtbParam param(R"({"headNum":"many","flag":true})");
  EXPECT_EQ(param.integer("headNum", 8), 8);
  EXPECT_EQ(mistake(param), "headNum must be a whole number, not \"many\"");
  EXPECT_FALSE(param.flag("flag", false)) << "nothing is believed after a mistake";

  for (const char* value : {"1.5", "1e3", "9223372036854775808", "true", "[1]"}) {
    const std::string text = std::string(R"({"k":)") + value + "}";
    AtbParam bad(text);
    EXPECT_EQ(bad.integer("k", 3), 3) << value;
    EXPECT_NE(mistake(bad), "") << value;
  }
  AtbParam huge(R"({"k":1e999})");
  huge.number("k", 0);
  EXPECT_EQ(mistake(huge), "k must be a number, not 1e999");
  AtbParam list(R"({"k":[1,"2"]})");
  EXPECT_TRUE(list.integers("k", {}).empty());
  EXPECT_EQ(mistake(list), R"(k must be a list of whole numbers, not [1,"2"])");
}

TEST(AtbParam, RefusesValuesThatAnEnumerationDoesNotHave) {
  AtbParam number(R"({"reduceType":4})");
  EXPECT_EQ(number.choice("reduceType", ReduceType::kSum), ReduceType::kSum);
  EXPECT_EQ(mistake(number), "reduceType 4 is not in range [0, 1, 2, 3]");
  for (const char* value : {"\"REDUCE_MEAN\"", "1.0", "true", "[1]", "\"1\"", "-1"}) {
    const std::string text = std::string(R"({"reduceType":)") + value + "}";
    AtbParam param(text);
    EXPECT_EQ(param.choice("reduceType", ReduceType::kUndefined), ReduceType::kUndefined);
    EXPECT_THAT(mistake(param), HasSubstr("is not in range")) << value;
  }
}

TEST(AtbParam, SaysWhatIsWrongWithDamagedText) {
  for (const char* text :
       {"{", "{\"a\":1", "[1]", "8", "\"text\"", "{\"a\":1}x", "{a:1}", "\xff"}) {
    AtbParam param(text);
    EXPECT_EQ(param.integer("a", 5), 5) << text;
    EXPECT_NE(mistake(param), "") << text;
  }
  const std::string deep(1000000, '[');
  const std::string nested = "{\"a\":" + deep;
  EXPECT_THAT(mistake(AtbParam(nested)), HasSubstr("nested deeper than"));
}

}  // namespace
}  // namespace ait::graph
