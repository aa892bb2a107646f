// The names that other tools give to calls and files. Whole runs of theirs are read by
// tests/e2e/test_import_*.py.
#include <gtest/gtest.h>

#include "capture/msprobe_dump.h"
#include "capture/sglang_dump.h"
#include "capture/transformers_debug.h"

namespace ait::capture {
namespace {

using Call = MsprobeCall;

TEST(MsprobeCalls, NameModulesAndCells) {
  const auto call = parse_msprobe_call("Module.model.layers.0.mlp.LlamaMLP.forward.12");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kind, Call::Kind::kModule);
  EXPECT_EQ(call->pass, Call::Pass::kForward);
  EXPECT_EQ(call->path, "model.layers.0.mlp");
  EXPECT_EQ(call->type, "LlamaMLP");
  EXPECT_EQ(call->number, 12u);
  const auto cell = parse_msprobe_call("Cell.fc.Dense.backward.0");
  ASSERT_TRUE(cell);
  EXPECT_EQ(cell->pass, Call::Pass::kBackward);
  EXPECT_EQ(cell->path, "fc");
  EXPECT_EQ(parse_msprobe_call("Module.fc.Linear.parameters_grad.1")->pass, Call::Pass::kGradients);
  const auto unnumbered = parse_msprobe_call("Module.fc.Linear.parameters_grad");
  ASSERT_TRUE(unnumbered);
  EXPECT_EQ(unnumbered->path, "fc");
  EXPECT_FALSE(unnumbered->is_numbered);
}

TEST(MsprobeCalls, NameFunctions) {
  const auto call = parse_msprobe_call("Functional.scaled_dot_product_attention.3.forward");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kind, Call::Kind::kFunction);
  EXPECT_EQ(call->path, "scaled_dot_product_attention");
  EXPECT_EQ(call->type, "Functional.scaled_dot_product_attention");
  EXPECT_EQ(call->number, 3u);
  EXPECT_EQ(parse_msprobe_call("Primitive.ops.Add.0.backward")->path, "ops.Add");
}

TEST(MsprobeCalls, AreNothingElse) {
  for (const char* key : {"", ".", "Module", "Module.forward.0", "Module.Linear.forward.0",
                          "Module.fc.Linear.forward", "Module.fc.Linear.sideways.0",
                          "Module.fc.Linear.forward.x", "Torch.0.forward", "Torch.add.forward",
                          "add.0", "Module.fc.Linear.forward.99999999999", "....forward.0"})
    EXPECT_FALSE(parse_msprobe_call(key)) << key;
  EXPECT_FALSE(parse_msprobe_call("Module." + std::string(2000, 'a') + ".Linear.forward.0"));
}

TEST(SglangFiles, NameModulesOfHooks) {
  const auto file = parse_sglang_file_name(
      "step=2___rank=1___dump_index=7___name=non_intrusive__model.layers.0.mlp.inputs.x.pt");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->step, 2u);
  EXPECT_EQ(file->rank, 1u);
  EXPECT_EQ(file->index, 7u);
  EXPECT_EQ(file->operation, "root.model.layers.0.mlp");
  EXPECT_EQ(file->tensor, "input_x");
  const auto root = parse_sglang_file_name(
      "forward_pass_id=0___rank=0___name=non_intrusive__output___dump_index=1.pt");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->operation, "root");
  EXPECT_EQ(root->tensor, "output");
}

TEST(SglangFiles, NameWhatAProgramDumped) {
  const auto layer =
      parse_sglang_file_name("step=0___rank=0___dump_index=1___name=hidden_states___layer_id=3.pt");
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->operation, "root.layers.3.hidden_states");
  EXPECT_EQ(layer->tensor, "output");
  EXPECT_EQ(parse_sglang_file_name("step=0___rank=0___dump_index=1___name=grad__x.pt")->operation,
            "backward.x");
  EXPECT_EQ(parse_sglang_file_name("step=0___rank=0___dump_index=1___name=param__w.pt")->tensor,
            "");
}

TEST(SglangFiles, AreNothingElse) {
  for (const char* name : {"", ".pt", "x.pt", "step=0___rank=0___name=x.pt",
                           "step=a___rank=0___dump_index=1___name=x.pt",
                           "step=0___rank=0___dump_index=1___name=x.npy", "step=0___rank=0___.pt"})
    EXPECT_FALSE(parse_sglang_file_name(name)) << name;
}

TEST(DebuggedTensors, NameModulesAndTensors) {
  const auto name = [](std::string_view file) {
    const auto parsed = parse_debugged_tensor(file, "Model");
    return parsed ? parsed->module + "/" + parsed->tensor : std::string();
  };
  EXPECT_EQ(name("Model.a.0_inputs_args_1.safetensors"), "root.a.0/input_1");
  EXPECT_EQ(name("Model.a_inputs_kwargs_encoder_outputs_0.safetensors"),
            "root.a/input_encoder_outputs_0");
  EXPECT_EQ(name("Model.a_outputs.safetensors"), "root.a/output");
  EXPECT_EQ(name("Model_outputs_logits.safetensors"), "root/output_logits");
  EXPECT_EQ(name("Model.a.safetensors"), "");
  EXPECT_EQ(name("Other.a_outputs.safetensors"), "");
  EXPECT_EQ(name("Model.a_outputs.json"), "");
}

}  // namespace
}  // namespace ait::capture
