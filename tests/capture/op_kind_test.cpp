#include "capture/op_kind.h"

#include <gtest/gtest.h>

#include "capture/atb_dump.h"
#include "capture/torch_dump.h"

namespace ait::capture {
namespace {

TEST(OpKinds, KnowsTheTypesOfBothSides) {
  EXPECT_EQ(atb_kind("RmsNormOperation", ""), OpKind::kNorm);
  EXPECT_EQ(atb_kind("LinearOperation", "{}"), OpKind::kLinear);
  EXPECT_EQ(atb_kind("GatherOperation", ""), OpKind::kMove);
  EXPECT_EQ(atb_kind("RopeOperation", ""), OpKind::kRotary);
  EXPECT_EQ(atb_kind("ElewiseOperation", R"({"elewiseType":8,"x":1})"), OpKind::kAdd);
  EXPECT_EQ(atb_kind("ElewiseOperation", R"({"elewiseType":"ELEWISE_MUL"})"), OpKind::kMultiply);
  EXPECT_EQ(atb_kind("ElewiseOperation", R"({"elewiseType":2})"), OpKind::kOther);
  for (const char* quantises : {R"({"elewiseType":6})", R"({"elewiseType":"ELEWISE_QUANT"})",
                                R"({"elewiseType": 18, "quantParam": {"inputScale": 1}})"})
    EXPECT_EQ(atb_kind("ElewiseOperation", quantises), OpKind::kQuantise) << quantises;
  EXPECT_EQ(atb_kind("Zyxw", "{}"), OpKind::kUnknown);
  EXPECT_EQ(atb_kind("Zyxw", "{\"elewiseType\""), OpKind::kUnknown);
  EXPECT_EQ(torch_kind("LlamaRMSNorm"), OpKind::kNorm);
  EXPECT_EQ(torch_kind("LlamaRotaryEmbedding"), OpKind::kOther);
  EXPECT_EQ(torch_kind("LlamaDecoderLayer"), OpKind::kUnknown);
}

}  // namespace
}  // namespace ait::capture
