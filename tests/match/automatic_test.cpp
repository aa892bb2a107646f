#include "match/automatic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "capture/atb_dump.h"
#include "capture/torch_dump.h"
#include "formats/write.h"
#include "match/by_types.h"
#include "test_files.h"

namespace ait::match {
namespace {

using capture::Recording;
using formats::TempFolder;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Files of tensors that are random, but the same for the same name.
class Dumps : public ::testing::Test {
 protected:
  std::vector<float> data(const std::string& name, size_t elements) {
    std::mt19937 engine(static_cast<uint32_t>(std::hash<std::string>()(name)));
    std::normal_distribution<float> normal;
    std::vector<float> out(elements);
    for (float& value : out) value = normal(engine);
    return out;
  }

  void save(const std::string& path, const std::vector<float>& values, Shape shape) {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    auto owner = std::make_shared<std::vector<float>>(values);
    const auto tensor = Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), DType::kFloat32,
                                           std::move(shape));
    const std::vector<formats::NamedTensor> tensors = {{"", *tensor}};
    ASSERT_TRUE(formats::write_tensor_file(file.string(), tensors,
                                           *formats::file_format_of(file.string())));
  }

  // What torch calls `module` in a round of `tokens`.
  void torch(const std::string& module, const std::string& name, int64_t columns,
             int64_t tokens = 5, const std::string& round = "0") {
    save("t/torch_tensors/cpu_1/" + round + "/" + module + "/output.pth",
         data(name + round, static_cast<size_t>(tokens * columns)), {1, tokens, columns});
  }
  void library(const std::string& operation, const std::string& name, int64_t columns,
               int64_t tokens = 5, const std::string& round = "0",
               const std::string& of_round = "0") {
    save("a/tensors/0_1/" + round + "/" + operation + "/after/outtensor0.bin",
         data(name + of_round, static_cast<size_t>(tokens * columns)), {tokens, columns});
  }

  Result<AutomaticPairs> pair(const AutomaticOptions& options = {}) {
    auto golden = capture::read_torch_dump((folder_.path() / "t").string());
    auto actual = capture::read_atb_dump((folder_.path() / "a").string());
    if (!golden) return fail(golden.error());
    if (!actual) return fail(actual.error());
    return pair_automatically(std::make_shared<const Recording>(std::move(*golden)),
                              std::make_shared<const Recording>(std::move(*actual)), options);
  }

  // "golden operation=my operation" of every pair.
  static std::vector<std::string> paired(const AutomaticPairs& found) {
    std::vector<std::string> out;
    for (size_t i = 0; i < found.pairs.count; ++i) {
      const Pair each = found.pairs.at(i);
      if (each.complete())
        out.push_back(each.golden.records[0].operation + "=" + each.actual.records[0].operation);
    }
    return out;
  }

  TempFolder folder_;
};

TEST_F(Dumps, OfManyTensorsWithoutLayersArePairedNearTheirPlace) {
  constexpr int kGolden = 600;
  constexpr int kMine = 1000;
  for (int i = 0; i < kGolden; ++i)
    torch("root.m" + std::to_string(i), "value " + std::to_string(i), 16);
  for (int i = 0; i + 1 < kMine; ++i) {
    const bool known = i * kGolden % kMine < kGolden;
    library(std::to_string(i) + "_Mystery",
            known ? "value " + std::to_string(i * kGolden / kMine) : "other " + std::to_string(i),
            16);
  }
  // The last one is nearly golden's fifth, but too far away from it to be recognised.
  auto far_away = data("value 50", 5 * 16);
  for (float& value : far_away) value += 0.001f;
  save("a/tensors/0_1/0/999_Mystery/after/outtensor0.bin", far_away, {5, 16});
  const auto found = pair();
  ASSERT_TRUE(found) << found.error().text();
  size_t right = 0;
  for (const std::string& each : paired(*found)) {
    const size_t at = each.find('=');
    const int golden = std::stoi(each.substr(std::string_view("root.m").size()));
    const int mine = std::stoi(each.substr(at + 1));
    EXPECT_EQ(golden, mine * kGolden / kMine) << each;
    ++right;
  }
  EXPECT_EQ(right, static_cast<size_t>(kGolden - 1));  // all but what the last one stands for
  ASSERT_EQ(found->notes.size(), 1u);
  EXPECT_THAT(found->notes[0], HasSubstr("no layers were found among 600 tensors of golden and "
                                         "1000 of my side, too many to compare all with all"));
}

TEST_F(Dumps, ArePairedByDataWhateverTheirNames) {
  torch("root.x", "first", 16);
  torch("root.y", "second", 16);
  torch("root.z", "third", 16);
  library("0_Qq", "second", 16);
  library("1_Ww", "other", 16);
  library("2_Ee", "first", 16);
  const auto found = pair();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(paired(*found), UnorderedElementsAre("root.y=0_Qq", "root.x=2_Ee"));
  EXPECT_EQ(found->actual.paired, 2u);
  EXPECT_EQ(found->golden.operations, 3u);
  EXPECT_EQ(found->certain, 2u);
}

TEST_F(Dumps, PairNothingWhereNothingAgreesAndTypesSayNothing) {
  torch("root.x", "first", 16);
  library("0_Qq", "second", 16);
  const auto found = pair();
  ASSERT_TRUE(found);
  EXPECT_TRUE(paired(*found).empty());
  EXPECT_EQ(found->pairs.count, 2u);  // each stands alone, with its reason
  for (size_t i = 0; i < 2; ++i) EXPECT_NE(found->pairs.at(i).alone, "");
}

TEST_F(Dumps, AlignDecodeRoundsOfGraphsOfTheirOwn) {
  for (const char* token : {"0", "1", "2"}) {
    const int64_t tokens = std::string(token) == "0" ? 5 : 1;
    torch("root.a.0.p", "a0", 16, tokens, token);
    torch("root.a.0.q", "a1", 32, tokens, token);
    torch("root.a.1.p", "b0", 16, tokens, token);
    torch("root.a.1.q", "b1", 32, tokens, token);
  }
  const auto layers = [&](int first, int64_t tokens, const std::string& folder,
                          const std::string& token) {
    const auto at = [&](int i) { return std::to_string(first + i) + "_L"; };
    library(at(0) + "/0_x", "a0", 16, tokens, folder, token);
    library(at(0) + "/1_x", "a1", 32, tokens, folder, token);
    library(at(1) + "/0_x", "b0", 16, tokens, folder, token);
    library(at(1) + "/1_x", "b1", 32, tokens, folder, token);
    library(at(2) + "_end", "none", 8, tokens, folder, token);
  };
  layers(0, 5, "0", "0");
  layers(3, 1, "0", "1");
  layers(3, 1, "1", "2");
  const auto found = pair();
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_EQ(found->tokens.size(), 3u);
  EXPECT_EQ(found->tokens[1].actual_round, "0");
  EXPECT_EQ(found->tokens[2].actual_round, "1");
  EXPECT_EQ(paired(*found).size(), 12u);
  EXPECT_EQ(found->golden_layers, 2u);

  AutomaticOptions options;
  options.token_map = *parse_token_map("1:1");
  const auto mapped = pair(options);
  ASSERT_TRUE(mapped) << mapped.error().text();
  ASSERT_EQ(mapped->tokens.size(), 1u);
  EXPECT_EQ(mapped->tokens[0].actual_round, "1");
  options.token_map = *parse_token_map("7:1");
  EXPECT_THAT(pair(options).error().text(), HasSubstr("has no round 7"));
}

// -opname self: what is left of a layer has the heads in a dimension of their own, and no other
// tensor tells how many tokens there were.
TEST_F(Dumps, TakeTheNumberOfTokensFromTheOtherSideWhereShapesDoNotTellIt) {
  for (const char* layer : {"0", "1"}) {
    const std::string module = std::string("root.a.") + layer;
    torch(module + ".p", std::string("p") + layer, 32);
    torch(module + ".q", std::string("q") + layer, 32);
    save(std::string("a/tensors/0_1/0/") + layer + "_Layer/4_SelfAttention/after/outtensor0.bin",
         data(std::string("q") + layer + "0", 5 * 32), {5, 4, 8});
  }
  const auto found = pair();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_THAT(paired(*found), UnorderedElementsAre("root.a.0.q=0_Layer/4_SelfAttention",
                                                   "root.a.1.q=1_Layer/4_SelfAttention"));
}

TEST_F(Dumps, NameWhatLiesInRoundsWithoutACounterpart) {
  for (const char* round : {"0", "1", "2"}) torch("root.x", "first", 16, 5, round);
  library("0_Qq", "first", 16);
  library("1_Ww", "only here", 16, 1, "4", "4");
  const auto found = pair();
  ASSERT_TRUE(found) << found.error().text();
  std::vector<std::string> rows;
  for (size_t i = 0; i < found->pairs.count; ++i) {
    const Pair each = found->pairs.at(i);
    const auto name = [](const Side& side) {
      return side.present() ? side.records[0].round + "/" + side.records[0].operation : "-";
    };
    rows.push_back(each.token + " " + name(each.golden) + " " + name(each.actual) +
                   (each.unread ? " " + each.alone : ""));
  }
  EXPECT_THAT(rows, ::testing::ElementsAre("0 0/root.x 0/0_Qq",
                                           "1 1/root.x - my-path has nothing of token 1.",
                                           "2 2/root.x - my-path has nothing of token 2.",
                                           "4 - 4/1_Ww golden-path has nothing of token 4."));
  EXPECT_THAT(found->notes, ::testing::Contains(HasSubstr("golden alone has tokens 1, 2")));
  EXPECT_THAT(found->notes, ::testing::Contains(HasSubstr("my side alone has token 4")));
}

TEST_F(Dumps, ObeyAMappingFile) {
  torch("root.x", "first", 16);
  torch("root.y", "second", 16);
  folder_.write(
      "t/torch_tensors/cpu_1/model_tree.json",
      R"({"name":"root","type":"M","children":[{"name":"root.x","type":"Aa","children":[]},
                    {"name":"root.y","type":"Bb","children":[]}]})");
  library("0_Foo", "first", 16);  // whatever the data say
  library("1_Bar", "nothing", 16);
  AutomaticOptions options;
  options.mappings = {{"Foo", "Bb", "", ""}};
  const auto found = pair(options);
  ASSERT_TRUE(found);
  EXPECT_THAT(paired(*found), UnorderedElementsAre("root.y=0_Foo"));
  EXPECT_EQ(found->likely, 1u);
}

TEST(TokenMap, SaysWhatItWants) {
  EXPECT_EQ(parse_token_map("0:1,2:3")->size(), 2u);
  EXPECT_TRUE(parse_token_map("")->empty());
  for (const char* text : {"0", "0:", ":1", "0:1,,"})
    EXPECT_THAT(parse_token_map(text).error().text(), HasSubstr("--token-map wants")) << text;
}

// The real topology and module tree, without any tensors: types, order and data flow are all there
// is.
TEST(RealFiles, AreMatchedAsFarAsOneLayerAllows) {
  const std::string data = AIT_TEST_DATA "/topology/";
  const TempFolder folder;
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::filesystem::create_directories((folder.path() / to).parent_path());
    std::filesystem::copy_file(data + from, folder.path() / to);
  };
  copy("Bloom7BFlashAttentionModel.json", "a/model/1/Bloom7BFlashAttentionModel.json");
  copy("model_tree.json", "t/torch_tensors/cpu_2/model_tree.json");
  const auto touch = [&](const std::string& path) { folder.write(path, ""); };
  const std::string layer = "a/tensors/0_1/0/3_BloomLayer/";
  for (const char* operation :
       {"0_LayerNormOperation", "1_LinearOperation", "2_SplitOperation", "3_SelfAttentionOperation",
        "4_ParallelLinearBaseV2/0_LinearOperation", "4_ParallelLinearBaseV2/1_ElewiseOperation",
        "4_ParallelLinearBaseV2", "5_ElewiseOperation", "6_LayerNormOperation",
        "7_MlpGateLayerV2/0_ParallelLinearBaseV2/0_LinearOperation",
        "7_MlpGateLayerV2/0_ParallelLinearBaseV2/1_ElewiseOperation",
        "7_MlpGateLayerV2/0_ParallelLinearBaseV2", "7_MlpGateLayerV2/1_ActivationOperation",
        "7_MlpGateLayerV2/2_ParallelLinearBaseV2/0_LinearOperation",
        "7_MlpGateLayerV2/2_ParallelLinearBaseV2/1_ElewiseOperation",
        "7_MlpGateLayerV2/2_ParallelLinearBaseV2", "7_MlpGateLayerV2", "8_ElewiseOperation"})
    touch(layer + operation + "/after/outtensor0.bin");
  touch(layer + "after/outtensor0.bin");
  const std::string torch = "t/torch_tensors/cpu_2/0/root.transformer.h.2";
  for (const char* module :
       {"", ".input_layernorm", ".self_attention", ".self_attention.query_key_value",
        ".self_attention.dense", ".post_attention_layernorm", ".mlp", ".mlp.dense_h_to_4h",
        ".mlp.gelu_impl", ".mlp.dense_4h_to_h"}) {
    touch(torch + module + "/output.pth");
    touch(torch + module + "/input_0.pth");
  }
  auto golden = capture::read_torch_dump((folder.path() / "t").string());
  auto actual = capture::read_atb_dump((folder.path() / "a").string());
  ASSERT_TRUE(golden) << golden.error().text();
  ASSERT_TRUE(actual) << actual.error().text();
  AutomaticOptions options;
  options.token_map = {{"0", "0"}};
  const auto found =
      pair_automatically(std::make_shared<const Recording>(std::move(*golden)),
                         std::make_shared<const Recording>(std::move(*actual)), options);
  ASSERT_TRUE(found) << found.error().text();
  std::map<std::string, std::string> partner;
  for (size_t i = 0; i < found->pairs.count; ++i) {
    const Pair pair = found->pairs.at(i);
    if (!pair.complete()) continue;
    EXPECT_EQ(pair.certainty, Certainty::kLikely);
    const std::string& path = pair.golden.records[0].path;
    partner[pair.actual.records[0].operation.substr(std::string("3_BloomLayer").size())] =
        pair.golden.records[0].operation.substr(std::string("root.transformer.h.2").size()) + "|" +
        path.substr(path.rfind('/') + 1);
  }
  EXPECT_EQ(partner["/0_LayerNormOperation"], ".input_layernorm|output.pth");
  EXPECT_EQ(partner["/1_LinearOperation"], ".self_attention.query_key_value|output.pth");
  EXPECT_EQ(partner["/6_LayerNormOperation"], ".post_attention_layernorm|output.pth");
  EXPECT_EQ(partner["/7_MlpGateLayerV2/1_ActivationOperation"], ".mlp.gelu_impl|output.pth");
  EXPECT_EQ(partner["/5_ElewiseOperation"], ".post_attention_layernorm|input_0.pth");
  EXPECT_EQ(partner[""], "|output.pth");
}

}  // namespace
}  // namespace ait::match
