// tests/e2e/test_compare_ge.py has texts that protobuf's own library prints.

#include "graph/ge_text.h"

#include <gmock/gmock.h>

#include "test_folder.h"

namespace ait::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GeGraph parsed(std::string_view text) {
  auto graph = parse_ge_text(text);
  EXPECT_TRUE(graph) << graph.error().text();
  return graph ? *graph : GeGraph{};
}

std::string refused(std::string_view text) {
  const auto graph = parse_ge_text(text);
  EXPECT_FALSE(graph) << text;
  return graph ? std::string() : graph.error().text();
}

TEST(GeText, KeepsWhatPairingNeeds) {
  const GeGraph graph = parsed(R"(
    name: "graph_1"
    op {
      name: "Cast_1"
      type: "Cast"
      output_desc { name: "y" dtype: DT_FLOAT shape { dim: 2 dim: 3 } }
    }
    op {
      name: "Add_2" type: "Add"
      input: "Cast_1:0" input: "" input: "Const_7:2" input: "Cast_1:-1"
      attr { key: "N" value { i: 2 } }
      output_desc {
        attr { key: "_fx_tensor_name" value { s: "add_1-aten.add.Tensor.OUTPUT.0" } }
        attr { key: "other" value { s: "no" } }
      }
      output_desc { }
    }
    attr { key: "top" value { list { s: "a" } } })");
  EXPECT_EQ(graph.name, "graph_1");
  ASSERT_EQ(graph.operations.size(), 2U);
  EXPECT_EQ(graph.operations[0].name, "Cast_1");
  EXPECT_THAT(graph.operations[0].inputs, IsEmpty());
  EXPECT_THAT(graph.operations[0].fx_tensors, ElementsAre(""));
  const GeOperation& add = graph.operations[1];
  EXPECT_EQ(add.type, "Add");
  EXPECT_THAT(add.inputs,
              ElementsAre(GeOperation::Source{"Cast_1", 0}, GeOperation::Source{"Const_7", 2}));
  EXPECT_THAT(add.fx_tensors, ElementsAre("add_1-aten.add.Tensor.OUTPUT.0", ""));
}

TEST(GeText, TextsMayHoldWhatLooksLikeStructure) {
  const GeGraph graph = parsed(R"(op { attr { key: "a: {" value { s: "} \" { op { name: \"X\"" } }
                                  name: 'it''s: {' # } a comment
                                  type: "\164\x79pe\n\\" })");
  ASSERT_EQ(graph.operations.size(), 1U);
  EXPECT_EQ(graph.operations[0].name, "it");
  EXPECT_EQ(graph.operations[0].type, "type\n\\");
}

TEST(GeText, TakesOtherSpellingsOfTheSame) {
  const GeGraph graph = parsed(R"(op: { name: "A", type: "T"; input: "B:1",
      ids: [1, 2, -3] names: ["]", 'x'] nested: [{ a: "}" }, {}] [ext.ension]: 1 f: -1.5e-07 })");
  ASSERT_EQ(graph.operations.size(), 1U);
  EXPECT_THAT(graph.operations[0].inputs, ElementsAre(GeOperation::Source{"B", 1}));
}

TEST(GeText, NamesTheLineOfWhatItDoesNotUnderstand) {
  EXPECT_THAT(refused("op {\n name: \"A\"\n"), HasSubstr("line 3 ends inside a block"));
  EXPECT_THAT(refused("}"), HasSubstr("line 1 closes a block that was not opened"));
  EXPECT_THAT(refused("op { name: \"A"), HasSubstr("ends inside a text"));
  EXPECT_THAT(refused("op { name: \"A\\"), HasSubstr("ends inside a text"));
  EXPECT_THAT(refused("op { a: [1, "), HasSubstr("ends inside a list"));
  EXPECT_THAT(refused("op { a: "), HasSubstr("ends before a value"));
  EXPECT_THAT(refused("op { a: }"), HasSubstr("expected the value of a"));
  EXPECT_THAT(refused("\n\nop ?"), HasSubstr("line 3 expected ':' or '{' after op"));
  EXPECT_THAT(refused("\"text\""), HasSubstr("expected the name of a field"));
  EXPECT_THAT(refused("[x"), HasSubstr("expected the name of a field"));
}

TEST(GeText, NestsHoweverDeepRealFilesDoAndNoDeeper) {
  const auto nested = [](size_t depth) {
    std::string text;
    for (size_t i = 0; i < depth; ++i) text += "a {";
    return text + std::string(depth, '}');
  };
  EXPECT_TRUE(parse_ge_text(nested(kMaxTextDepth)));
  EXPECT_THAT(refused(nested(kMaxTextDepth + 1)), HasSubstr("too deep"));
  EXPECT_THAT(refused(nested(1'000'000)), HasSubstr("too deep"));
  EXPECT_TRUE(parse_ge_text("a: " + std::string(500'000, '[') + std::string(500'000, ']')));
}

TEST(GeText, NamesTheFileItCannotRead) {
  TestFolder folder;
  EXPECT_THAT(read_ge_text(folder.path("no.txt")).error().text(), HasSubstr("no.txt"));
  EXPECT_THAT(read_ge_text(folder.write("x.txt", "op {")).error().text(), HasSubstr("x.txt"));
  EXPECT_THAT(parsed("").operations, IsEmpty());
}

}  // namespace
}  // namespace ait::graph
