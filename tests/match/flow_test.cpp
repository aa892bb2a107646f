#include "match/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "capture/atb_dump.h"
#include "capture/torch_dump.h"
#include "match/automatic.h"
#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::OpKind;
using capture::Recording;
using formats::TempFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr size_t kTokens = 5;
constexpr size_t kHidden = 16;

Matrix value(const std::string& name, size_t columns = kHidden, size_t rows = kTokens) {
  return random_matrix(name, rows, columns);
}

Matrix product(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] *= b.values[i];
  return a;
}

// A recorded run that a test writes tensor by tensor, in the order in which they came about.
class TorchRun {
 public:
  // "root.layers.0.mlp", "input_0"
  void save(const std::string& module, const std::string& tensor, const Matrix& matrix,
            const std::string& round = "0") {
    const auto rows = static_cast<int64_t>(matrix.rows);
    save(module, tensor, matrix.values, {1, rows, static_cast<int64_t>(matrix.columns)}, round);
  }
  void save(const std::string& module, const std::string& tensor, const std::vector<float>& values,
            const Shape& shape, const std::string& round = "0") {
    if (called_.insert(module).second)
      calls_[module.substr(0, module.find('#'))].push_back(called_.size());
    const auto file = rank() / round / module / (tensor + ".npy");
    std::filesystem::create_directories(file.parent_path());
    auto owner = std::make_shared<std::vector<float>>(values);
    const auto made =
        Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), DType::kFloat32, shape);
    const std::vector<formats::NamedTensor> tensors = {{"", *made}};
    ASSERT_TRUE(formats::write_tensor_file(file.string(), tensors, formats::FileFormat::kNpy));
  }
  void forget(const std::string& module) {
    std::filesystem::remove_all(rank() / "0" / module);
    calls_.erase(module);
  }
  void forget_inputs() {
    std::vector<std::filesystem::path> inputs;
    for (const auto& each : std::filesystem::recursive_directory_iterator(rank()))
      if (each.path().filename().string().starts_with("input")) inputs.push_back(each.path());
    for (const auto& each : inputs) std::filesystem::remove(each);
  }

  std::shared_ptr<const Recording> read() const {
    std::ofstream(rank() / "model_tree.json") << tree("root");
    auto recording = capture::read_torch_dump(folder_.path().string());
    EXPECT_TRUE(recording) << recording.error().text();
    return std::make_shared<const Recording>(std::move(*recording));
  }

 private:
  std::filesystem::path rank() const { return folder_.path() / "torch_tensors" / "cpu_1"; }

  std::string tree(const std::string& name) const {
    std::set<std::string> children;
    for (const auto& [module, calls] : calls_)
      if (module.starts_with(name + "."))
        children.insert(module.substr(0, module.find('.', name.size() + 1)));
    const std::string last = name.substr(name.rfind('.') + 1);
    const std::string type = last == "norm" || last == "norm2" ? "LlamaRMSNorm"
                             : last == "act"                   ? "SiLU"
                             : last == "router"                ? "Router"
                             : last == "drop"                  ? "Dropout"
                             : children.empty()                ? "Linear"
                                                               : "Block";
    std::string out = R"({"name": ")" + name + R"(", "type": ")" + type + "\"";
    if (const auto calls = calls_.find(name); calls != calls_.end()) {
      out += R"(, "order": )" + std::to_string(calls->second[0]) + R"(, "calls": [)";
      for (const size_t call : calls->second)
        out += (call == calls->second[0] ? "" : ", ") + std::to_string(call);
      out += "]";
    }
    out += R"(, "children": [)";
    bool first = true;
    for (const std::string& child : children) {
      out += (first ? "" : ", ") + tree(child);
      first = false;
    }
    return out + "]}";
  }

  TempFolder folder_;
  std::set<std::string> called_;
  std::map<std::string, std::vector<size_t>> calls_;  // of each module: when
};

// What went in and came out of a layer like those of llama.
Matrix save_layer(TorchRun& run, size_t number, const Matrix& x, bool adds = true,
                  const Matrix& table = value("table", 8)) {
  const std::string layer = "root.layers." + std::to_string(number);
  const auto own = [&](const std::string& name, size_t columns = kHidden) {
    return value(layer + name, columns);
  };
  const auto leaf = [&](const std::string& name, const Matrix& in, size_t columns = kHidden) {
    run.save(layer + name, "input_0", in);
    const Matrix out = own(name, columns);
    run.save(layer + name, "output", out);
    return out;
  };
  run.save(layer, "input_0", x);
  run.save(layer, "input_table", table);
  const Matrix normed = leaf(".norm", x);
  run.save(layer + ".attn", "input_0", normed);
  run.save(layer + ".attn", "input_table", table);
  leaf(".attn.q", normed);
  leaf(".attn.k", normed, 8);
  const Matrix attended = leaf(".attn.o", own(" attention"));
  run.save(layer + ".attn", "output", attended);
  const Matrix middle = adds ? x + attended : attended;
  const Matrix again = leaf(".norm2", middle);
  run.save(layer + ".mlp", "input_0", again);
  const Matrix gate = leaf(".mlp.gate", again, 24);
  const Matrix up = leaf(".mlp.up", again, 24);
  const Matrix act = leaf(".mlp.act", gate, 24);
  const Matrix down = leaf(".mlp.down", product(act, up));
  run.save(layer + ".mlp", "output", down);
  const Matrix out = middle + down;
  run.save(layer, "output", out);
  return out;
}

void save_model(TorchRun& run, size_t layers, const std::set<size_t>& without_addition = {},
                bool overflows = false) {
  run.save("root", "input_ids", {1, 5, 3, 2, 9}, {1, kTokens});
  run.save("root.embed", "input_0", {1, 5, 3, 2, 9}, {1, kTokens});
  Matrix x = value("embed");
  run.save("root.embed", "output", x);
  run.save("root.angles", "input_0", value("inverse frequencies"));
  run.save("root.angles", "output", value("table", 8));
  for (size_t i = 0; i < layers; ++i) {
    x = save_layer(run, i, x, !without_addition.contains(i));
    if (!overflows) continue;
    for (float& each : x.values) each = NAN;
    run.save("root.layers." + std::to_string(i), "output", x);
  }
  run.save("root.norm", "input_0", x);
  run.save("root.norm", "output", value("last norm"));
  run.save("root", "output", value("last norm"));
}

std::string name_of(const Pair& pair) { return pair.subject.name + "/" + pair.subject.tensor; }

// Where the rows of two runs come from.
class Origins {
 public:
  Origins(const TorchRun& golden, const TorchRun& actual) : Origins(golden.read(), actual.read()) {}
  Origins(std::shared_ptr<const Recording> golden, std::shared_ptr<const Recording> actual) {
    auto found = pair_automatically(std::move(golden), std::move(actual), {});
    EXPECT_TRUE(found) << found.error().text();
    for (size_t i = 0; found && i < found->pairs.count; ++i) {
      rows_.push_back(found->pairs.at(i));
      if (!rows_.back().origin.is_known) continue;
      for (const uint32_t before : rows_.back().origin.sources) {
        EXPECT_GT(before, 0u);
        EXPECT_LE(before, i);
        EXPECT_EQ(rows_[i - before].token, rows_[i].token);
      }
    }
  }

  const Origin& of(const std::string& row) const {
    static const Origin nothing;
    const size_t at = index_of(row);
    return at < rows_.size() ? rows_[at].origin : nothing;
  }
  std::vector<std::string> sources(const std::string& row) const {
    std::vector<std::string> out;
    const size_t at = index_of(row);
    if (at < rows_.size())
      for (const uint32_t before : rows_[at].origin.sources)
        out.push_back(name_of(rows_[at - before]));
    return out;
  }

  const std::vector<Pair>& rows() const { return rows_; }

 private:
  size_t index_of(const std::string& row) const {
    for (size_t i = 0; i < rows_.size(); ++i)
      if (name_of(rows_[i]) == row) return i;
    ADD_FAILURE() << "no row " << row;
    return rows_.size();
  }

  std::vector<Pair> rows_;
};

TEST(FlowOfTorch, FollowsWhatModulesReadAndPutOut) {
  TorchRun run;
  save_model(run, 4);
  const Origins origins(run, run);
  for (const char* number : {"0", "1", "2", "3"}) {
    SCOPED_TRACE(number);
    const std::string layer = std::string("root.layers.") + number;
    EXPECT_THAT(origins.sources(layer + ".attn.q/output"), ElementsAre(layer + ".norm/output"));
    EXPECT_EQ(origins.of(layer + ".attn.q/output").operation, layer + ".attn.q");
    EXPECT_EQ(origins.of(layer + ".attn.q/output").kind, OpKind::kLinear);
    EXPECT_THAT(origins.sources(layer + ".norm2/output"), ElementsAre(layer + ".norm2/input_0"));
  }
  EXPECT_THAT(origins.sources("root.layers.0.norm/output"), ElementsAre("root.embed/output"));
  EXPECT_THAT(origins.sources("root.layers.3.norm/output"), ElementsAre("root.layers.2/output"));
  EXPECT_THAT(origins.sources("root.norm/output"), ElementsAre("root.layers.3/output"));
  EXPECT_TRUE(origins.of("root.embed/output").is_known);
  EXPECT_THAT(origins.sources("root.embed/output"), IsEmpty());
}

TEST(FlowOfTorch, KnowsWhatIsComputedBetweenModules) {
  TorchRun run;
  save_model(run, 4);
  const Origins origins(run, run);
  for (const char* number : {"0", "1", "2", "3"}) {
    SCOPED_TRACE(number);
    const std::string layer = std::string("root.layers.") + number;
    const std::string before =
        *number == '0' ? "root.embed" : "root.layers." + std::string(1, *number - 1);
    // Nothing explains it: all that was there and that nobody had read.
    EXPECT_THAT(origins.sources(layer + ".attn.o/input_0"),
                UnorderedElementsAre(layer + ".attn.q/output", layer + ".attn.k/output",
                                     "root.angles/output"));
    EXPECT_EQ(origins.of(layer + ".attn.o/input_0").operation, layer + ".attn");
    EXPECT_EQ(origins.of(layer + ".attn.o/input_0").kind, OpKind::kUnknown);
    // A sum, and a product.
    EXPECT_THAT(origins.sources(layer + ".norm2/input_0"),
                UnorderedElementsAre(layer + ".attn/output", before + "/output"));
    EXPECT_EQ(origins.of(layer + ".norm2/input_0").operation, layer);
    EXPECT_EQ(origins.of(layer + ".norm2/input_0").kind, OpKind::kAdd);
    EXPECT_THAT(origins.sources(layer + ".mlp.down/input_0"),
                UnorderedElementsAre(layer + ".mlp.act/output", layer + ".mlp.up/output"));
    EXPECT_EQ(origins.of(layer + ".mlp.down/input_0").operation, layer + ".mlp");
    EXPECT_EQ(origins.of(layer + ".mlp.down/input_0").kind, OpKind::kMultiply);
    EXPECT_THAT(origins.sources(layer + "/output"),
                UnorderedElementsAre(layer + ".mlp/output", layer + ".norm2/input_0"));
    EXPECT_EQ(origins.of(layer + "/output").operation, layer);
  }
}

TEST(FlowOfTorch, TakesWhatAModulePassesOnForACopy) {
  TorchRun run;
  save_model(run, 3);
  const Origins origins(run, run);
  for (const auto& [row, source] :
       {std::pair("root.layers.2.mlp/output", "root.layers.2.mlp.down/output"),
        std::pair("root.layers.2.attn/output", "root.layers.2.attn.o/output"),
        std::pair("root/output", "root.norm/output")}) {
    EXPECT_TRUE(origins.of(row).is_copy) << row;
    EXPECT_THAT(origins.sources(row), ElementsAre(source));
  }
  EXPECT_FALSE(origins.of("root.layers.2/output").is_copy);
  EXPECT_FALSE(origins.of("root.layers.2.norm2/input_0").is_copy);
}

TEST(FlowOfTorch, PassesOverWhatHasNoPartner) {
  TorchRun golden;
  save_model(golden, 3);
  TorchRun actual;
  save_model(actual, 3);
  golden.forget("root.layers.1.mlp.gate");
  golden.forget("root.layers.1.mlp.act");
  const Origins origins(golden, actual);
  const std::string layer = "root.layers.1";
  EXPECT_THAT(origins.sources(layer + ".mlp.down/input_0"),
              UnorderedElementsAre(layer + ".mlp.up/output", layer + ".norm2/output"));
  EXPECT_THAT(origins.of(layer + ".mlp.down/input_0").passed,
              ElementsAre(layer + ".mlp.gate", layer + ".mlp.act"));
  EXPECT_THAT(origins.of("root.layers.2.mlp.down/input_0").passed, IsEmpty());
}

TEST(FlowOfTorch, IsNotMisledByALayerThatLeavesOutAnAddition) {
  TorchRun golden;
  save_model(golden, 5);
  TorchRun actual;
  save_model(actual, 5, {1});
  const Origins origins(golden, actual);
  EXPECT_THAT(origins.sources("root.layers.3.norm2/input_0"),
              UnorderedElementsAre("root.layers.3.attn/output", "root.layers.2/output"));
  EXPECT_FALSE(origins.of("root.layers.3.norm2/input_0").is_copy);
  EXPECT_EQ(origins.of("root.layers.1.norm2/input_0").operation, "root.layers.1");
}

TEST(FlowOfTorch, IsNotMisledWhereThereAreTwoLayers) {
  for (const size_t faulty : {0, 1}) {
    TorchRun golden;
    save_model(golden, 2);
    TorchRun actual;
    save_model(actual, 2, {faulty});
    const Origins origins(golden, actual);
    const std::string layer = "root.layers." + std::to_string(faulty);
    EXPECT_THAT(origins.sources(layer + ".norm2/input_0"),
                UnorderedElementsAre(layer + ".attn/output",
                                     faulty == 0 ? "root.embed/output" : "root.layers.0/output"));
  }
}

TEST(FlowOfTorch, IsKnownOfLayersThatHoldNothingButNaN) {
  TorchRun golden;
  save_model(golden, 5);
  TorchRun actual;
  save_model(actual, 5, {}, true);
  const Origins origins(golden, actual);
  for (size_t i = 1; i < 5; ++i) {
    const std::string layer = "root.layers." + std::to_string(i);
    EXPECT_THAT(origins.sources(layer + ".norm2/input_0"),
                UnorderedElementsAre("root.layers." + std::to_string(i - 1) + "/output",
                                     layer + ".attn/output"));
  }
}

TEST(FlowOfTorch, KnowsWhichTableALayerIsGiven) {
  TorchRun run;
  Matrix x = value("embed");
  run.save("root", "input_0", value("ids"));
  run.save("root.embed", "input_0", value("ids"));
  run.save("root.embed", "output", x);
  for (const char* name : {"near", "far"}) {
    run.save("root." + std::string(name), "input_0", value("inverse frequencies"));
    run.save("root." + std::string(name), "output", value(name, 8));
  }
  const auto table = [](size_t layer) { return layer % 4 == 3 ? "far" : "near"; };
  for (size_t i = 0; i < 8; ++i) x = save_layer(run, i, x, true, value(table(i), 8));
  run.save("root", "output", x);
  const Origins origins(run, run);
  for (size_t i = 0; i < 8; ++i) {
    const std::string layer = "root.layers." + std::to_string(i);
    EXPECT_THAT(origins.sources(layer + ".attn.o/input_0"),
                UnorderedElementsAre(layer + ".attn.q/output", layer + ".attn.k/output",
                                     std::string("root.") + table(i) + "/output"));
  }
}

TEST(FlowOfTorch, IsNotKnownWithoutInputs) {
  TorchRun run;
  save_model(run, 3);
  run.forget_inputs();
  const Origins origins(run, run);
  EXPECT_FALSE(origins.of("root.layers.1.attn.q/output").is_known);
  EXPECT_FALSE(origins.of("root.layers.1/output").is_known);
  EXPECT_TRUE(origins.of("root.layers.1.mlp/output").is_copy);
  EXPECT_THAT(origins.sources("root.layers.1.mlp/output"),
              ElementsAre("root.layers.1.mlp.down/output"));
}

TEST(FlowOfTorch, KeepsCallsOfAModuleApart) {
  TorchRun run;
  const auto step = [&](const std::string& module, const std::string& in, const std::string& out) {
    run.save(module, "input_0", value(in));
    run.save(module, "output", value(out));
  };
  run.save("root", "input_0", value("x"));
  step("root.a", "x", "a");
  step("root.drop", "a", "a");
  step("root.b", "a", "b");
  step("root.drop#1", "b", "b");
  step("root.c", "b", "c");
  run.save("root", "output", value("c"));
  const Origins origins(run, run);
  EXPECT_THAT(origins.sources("root.drop/output"), ElementsAre("root.a/output"));
  EXPECT_TRUE(origins.of("root.drop/output").is_copy);
  EXPECT_THAT(origins.sources("root.b/output"), ElementsAre("root.drop/output"));
  EXPECT_THAT(origins.sources("root.drop#1/output"), ElementsAre("root.b/output"));
  EXPECT_THAT(origins.sources("root.c/output"), ElementsAre("root.drop#1/output"));
}

TEST(FlowOfTorch, KeepsExpertsApart) {
  TorchRun run;
  const Matrix x = value("x");
  const Matrix routed = value("router", 8);
  run.save("root", "input_0", x);
  run.save("root.router", "input_0", x);
  run.save("root.router", "output", routed);
  const auto tokens = [&](size_t first) {
    Matrix out{3, kHidden, {}};
    for (const size_t row : {first, first + 1, size_t{4}})
      out.values.insert(out.values.end(), x.values.begin() + row * kHidden,
                        x.values.begin() + (row + 1) * kHidden);
    return out;
  };
  for (const size_t expert : {0, 1, 2}) {
    const std::string name = "root.experts." + std::to_string(expert);
    run.save(name, "input_0", tokens(expert % 2));
    run.save(name, "output", value(name, kHidden, 3));
  }
  run.save("root", "output", value("y"));
  const Origins origins(run, run);
  // What the first one was given, the third one is, too: rows of inputs are of those that differ.
  EXPECT_THAT(origins.sources("root.experts.2/output"), ElementsAre("root.experts.0/input_0"));
  EXPECT_THAT(origins.sources("root.experts.1/input_0"),
              UnorderedElementsAre("root/input_0", "root.router/output"));
  EXPECT_EQ(origins.of("root.experts.1/input_0").kind, OpKind::kMove);
  EXPECT_EQ(origins.of("root.experts.1/input_0").operation, "root");
  EXPECT_THAT(origins.sources("root/output"),
              UnorderedElementsAre("root.router/output", "root.experts.0/output",
                                   "root.experts.1/output", "root.experts.2/output"));
}

// A prompt of one token, for which attention is what it attends to, and a new word.
TEST(FlowOfTorch, IsThatOfAWordWhereThePromptSaysNothing) {
  TorchRun run;
  for (const std::string round : {"0", "1"}) {
    const auto one = [&](const std::string& name) { return value(name + round, 32, 1); };
    const auto step = [&](const std::string& module, const Matrix& in, const Matrix& out) {
      run.save(module, "input_0", in, round);
      run.save(module, "output", out, round);
    };
    run.save("root", "input_0", one("x"), round);
    step("root.k", one("x"), one("k"));
    step("root.v", one("x"), one("v"));
    step("root.o", round == "0" ? one("v") : one("attention"), one("o"));
    run.save("root", "output", one("o"), round);
  }
  const Origins origins(run, run);
  EXPECT_THAT(origins.sources("root.o/output"),
              UnorderedElementsAre("root.k/output", "root.v/output"));
  EXPECT_THAT(origins.of("root.o/output").passed, ElementsAre("root"));
}

TEST(PaddingOfTorch, IsWhatTheMaskHides) {
  TorchRun run;
  const auto save = [&](const std::string& round, int64_t tokens, const std::vector<float>& mask) {
    const auto size = static_cast<size_t>(tokens);
    run.save("root", "input_ids", std::vector<float>(2 * size, 1), {2, tokens}, round);
    run.save("root", "input_attention_mask", mask, {2, static_cast<int64_t>(mask.size()) / 2},
             round);
    run.save("root.a", "input_0", value("x" + round, kHidden, 2 * size).values,
             {2, tokens, kHidden}, round);
    run.save("root.a", "output", value("a" + round, kHidden, 2 * size).values, {2, tokens, kHidden},
             round);
    run.save("root", "output", value("a" + round, kHidden, 2 * size).values, {2, tokens, kHidden},
             round);
  };
  save("0", 3, {0, 1, 1, 1, 1, 1});
  save("1", 1, {0, 1, 1, 1, 1, 1, 1, 1});  // a new word, with the mask of all before it
  const Origins origins(run, run);
  size_t seen = 0;
  for (const Pair& pair : origins.rows()) {
    if (pair.token == "1") {
      EXPECT_EQ(pair.padding, nullptr);
      continue;
    }
    ++seen;
    ASSERT_NE(pair.padding, nullptr);
    EXPECT_THAT(*pair.padding, ElementsAre(true, false, false, false, false, false));
  }
  EXPECT_GT(seen, 0u);
}

// A graph with four layers, whose topology names tensors. Turned keys were not recorded.
std::string library_model() {
  std::string out = "0_GatherOperation x=ids y=h0\n";
  for (int layer = 1; layer <= 4; ++layer) {
    const std::string n = std::to_string(layer);
    const std::string before = "h" + std::to_string(layer - 1);
    out += n + "_Layer x=" + before + " x=w y=h" + n + "\n";
    out += "  0_RmsNormOperation x=" + before + " x=w y=n" + n + "\n";
    out += "  1_Attention x=n" + n + " y=a" + n + "\n";
    out += "    0_LinearOperation x=n" + n + " x=w y=q" + n + "\n";
    out += "    1_LinearOperation x=n" + n + " x=w y=k" + n + "\n";
    out += "    2_RopeOperation x=q" + n + " x=k" + n + " x=cos y=r" + n + " y=s" + n + "\n";
    out += "    3_SelfAttentionOperation x=r" + n + " x=s" + n + " y=t" + n + "\n";
    out += "    4_LinearOperation x=t" + n + " x=w y=p" + n + "\n";
    out += "    5_AllReduceOperation x=p" + n + " y=a" + n + "\n";
    out += "  2_ElewiseOperation x=" + before + " x=a" + n + " y=h" + n + "\n";
  }
  return out;
}

std::shared_ptr<const Recording> shared(const TinyRun& run) {
  return std::make_shared<const Recording>(run.recording);
}

TEST(FlowOfALibrary, FollowsTheNamesOfItsTopology) {
  const TinyRun run(capture::kAtbTraits, library_model());
  const Origins origins(shared(run), shared(run));
  EXPECT_THAT(origins.sources("0_GatherOperation/outtensor0"), IsEmpty());
  for (const int number : {2, 3, 4}) {
    const std::string layer = std::to_string(number) + "_Layer";
    const std::string before = std::to_string(number - 1) + "_Layer/outtensor0";
    const std::string attention = layer + "/1_Attention";
    EXPECT_THAT(origins.sources(layer + "/0_RmsNormOperation/outtensor0"), ElementsAre(before));
    EXPECT_THAT(origins.sources(attention + "/0_LinearOperation/outtensor0"),
                ElementsAre(layer + "/0_RmsNormOperation/outtensor0"));
    EXPECT_THAT(origins.sources(attention + "/2_RopeOperation/outtensor0"),
                ElementsAre(attention + "/0_LinearOperation/outtensor0"));
    EXPECT_THAT(origins.sources(attention + "/3_SelfAttentionOperation/outtensor0"),
                UnorderedElementsAre(attention + "/2_RopeOperation/outtensor0",
                                     attention + "/1_LinearOperation/outtensor0"));
    EXPECT_THAT(origins.of(attention + "/3_SelfAttentionOperation/outtensor0").passed,
                ElementsAre(attention + "/2_RopeOperation"));
    EXPECT_THAT(origins.sources(layer + "/2_ElewiseOperation/outtensor0"),
                UnorderedElementsAre(before, attention + "/outtensor0"));
    EXPECT_THAT(origins.sources(layer + "/outtensor0"),
                ElementsAre(layer + "/2_ElewiseOperation/outtensor0"));
    EXPECT_TRUE(origins.of(layer + "/outtensor0").is_copy);
  }
}

TEST(FlowOfALibrary, TakesWhatRanksExchangeFromAllOfThem) {
  const TinyRun run(capture::kAtbTraits, library_model(), 2);
  const Origins origins(shared(run), shared(run));
  std::map<std::string, std::vector<std::string>> sources;  // with their ranks
  const std::vector<Pair>& rows = origins.rows();
  const auto name = [](const Pair& pair) { return pair.subject.name + "@" + pair.subject.rank; };
  for (size_t i = 0; i < rows.size(); ++i)
    for (const uint32_t before : rows[i].origin.sources)
      sources[name(rows[i])].push_back(name(rows[i - before]));
  const std::string attention = "1_Layer/1_Attention/";
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(sources[attention + "4_LinearOperation@" + rank],
                ElementsAre(attention + "3_SelfAttentionOperation@" + rank));
    EXPECT_THAT(sources[attention + "5_AllReduceOperation@" + rank],
                ElementsAre(attention + "4_LinearOperation@1", attention + "4_LinearOperation@0"));
  }
}

TEST(FlowOfALibrary, LeadsFromInputToInputWhereNothingElseWasRecorded) {
  const TinyRun run(capture::kAtbTraits, R"(
    0_GatherOperation x=ids y=e none in
    1_RmsNormOperation x=e y=n none in
    2_LinearOperation x=n y=l none in
    3_LinearOperation x=l y=m none in
  )");
  const Origins origins(shared(run), shared(run));
  EXPECT_THAT(origins.sources("3_LinearOperation/intensor0"),
              ElementsAre("2_LinearOperation/intensor0"));
  EXPECT_EQ(origins.of("3_LinearOperation/intensor0").operation, "2_LinearOperation");
}

// An operation that reads one matrix and writes another, without names.
void save_both(TinyRun& run, const std::string& name, const Matrix& in, const Matrix& out) {
  const uint32_t input = run.recording.first_slot[run.operation(name)];
  const std::string path = run.recording.record(0, 0, input).path;
  run.save(name, out);
  auto owner = std::make_shared<std::vector<float>>(in.values);
  const auto tensor =
      Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), DType::kFloat32,
                         {static_cast<int64_t>(in.rows), static_cast<int64_t>(in.columns)});
  const std::vector<formats::NamedTensor> tensors = {{"", *tensor}};
  ASSERT_TRUE(formats::write_tensor_file(path, tensors, formats::FileFormat::kNpy));
}

TEST(FlowOfALibrary, IsFoundFromDataWithoutATopology) {
  TinyRun run(capture::kAtbTraits, R"(
    0_RmsNormOperation in
    1_Mlp in
      0_LinearOperation in
      1_LinearOperation in
    2_LinearOperation in
  )");
  save_both(run, "0_RmsNormOperation", value("x"), value("n"));
  save_both(run, "1_Mlp", value("n"), value("d"));
  save_both(run, "1_Mlp/0_LinearOperation", value("n"), value("u"));
  save_both(run, "1_Mlp/1_LinearOperation", value("u"), value("d"));
  save_both(run, "2_LinearOperation", value("d"), value("o"));
  const Origins origins(shared(run), shared(run));
  EXPECT_THAT(origins.sources("1_Mlp/0_LinearOperation/outtensor0"),
              ElementsAre("0_RmsNormOperation/outtensor0"));
  EXPECT_THAT(origins.sources("1_Mlp/1_LinearOperation/outtensor0"),
              ElementsAre("1_Mlp/0_LinearOperation/outtensor0"));
  EXPECT_TRUE(origins.of("1_Mlp/outtensor0").is_copy);
  EXPECT_THAT(origins.sources("1_Mlp/outtensor0"),
              ElementsAre("1_Mlp/1_LinearOperation/outtensor0"));
  // What comes from outside is nobody's.
  EXPECT_TRUE(origins.of("0_RmsNormOperation/outtensor0").is_known);
  EXPECT_THAT(origins.sources("0_RmsNormOperation/outtensor0"), IsEmpty());
  EXPECT_THAT(origins.sources("2_LinearOperation/outtensor0"), ElementsAre("1_Mlp/outtensor0"));
}

// Topologies of layers have names of their own for what goes in and comes out.
constexpr const char* kLayersAlone = R"(
  0_GatherOperation x=g0_in y=g0_out
  1_Layer x=l1_in x=l1_w y=l1_out
    0_RmsNormOperation x=l1_in x=l1_w y=l1_a
    1_LinearOperation x=l1_a x=l1_w y=l1_b
    2_ElewiseOperation x=l1_in x=l1_b y=l1_out
  2_Layer x=l2_in x=l2_w y=l2_out
    0_RmsNormOperation x=l2_in x=l2_w y=l2_a
    1_LinearOperation x=l2_a x=l2_w y=l2_b
    2_ElewiseOperation x=l2_in x=l2_b y=l2_out
)";

TEST(FlowOfALibrary, IsNotKnownBetweenLayersOfWhichEachHasItsOwnNames) {
  TinyRun run(capture::kAtbTraits, kLayersAlone);
  run.recording.operations[run.operation("2_Layer/2_ElewiseOperation")].kind = OpKind::kAdd;
  const Origins origins(shared(run), shared(run));
  EXPECT_THAT(origins.sources("2_Layer/1_LinearOperation/outtensor0"),
              ElementsAre("2_Layer/0_RmsNormOperation/outtensor0"));
  EXPECT_THAT(origins.sources("2_Layer/outtensor0"),
              ElementsAre("2_Layer/2_ElewiseOperation/outtensor0"));
  EXPECT_FALSE(origins.of("2_Layer/0_RmsNormOperation/outtensor0").is_known);
  EXPECT_FALSE(origins.of("2_Layer/2_ElewiseOperation/outtensor0").is_known);
}

TEST(FlowOfALibrary, IsTheSameForKernelsAsForTheirOperations) {
  const TinyRun run(capture::kAtbTraits, R"(
    0_RmsNormOperation x=e y=n
      0_NormKernel kernel
    1_LinearOperation x=n y=l
      0_MatMulKernel kernel
  )");
  const Origins origins(shared(run), shared(run));
  EXPECT_THAT(origins.sources("1_LinearOperation/0_MatMulKernel/outtensor0"),
              ElementsAre("0_RmsNormOperation/outtensor0"));
  EXPECT_EQ(origins.of("1_LinearOperation/0_MatMulKernel/outtensor0").operation,
            "1_LinearOperation/0_MatMulKernel");
}

}  // namespace
}  // namespace ait::match
