#include "formats/pickle.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_files.h"

namespace ait::formats::pickle {
namespace {

using namespace std::string_literals;

class Pickle : public testing::Test {
 protected:
  // The text stays alive for the strings of the document.
  Result<Document> read(std::string text) {
    text_ = std::move(text);
    return parse(std::as_bytes(std::span(text_.data(), text_.size())), {"x.pt", 0});
  }
  ErrorCode failure(std::string text) {
    auto document = read(std::move(text));
    EXPECT_FALSE(document);
    if (document) return ErrorCode::kInterrupted;
    message_ = document.error().text();
    return document.error().code();
  }

  std::string text_;
  std::string message_;
};

std::vector<Id> items(const Document& document, Id id) {
  std::vector<Id> all;
  for (const Id item : document.items(id)) all.push_back(item);
  return all;
}

TEST_F(Pickle, ReadsEveryKindOfPlainValue) {
  const std::string text =
      "\x80\x04("s + "N" + "\x88\x89" + "K\xff" + "M\xff\xff" + "J\xfe\xff\xff\xff" +
      "\x8a\x02\x00\x80"s + "\x8a\x00"s + "G\x3f\xf8\x00\x00\x00\x00\x00\x00"s + "\x8c\x02hi" +
      "C\x01z" + "I01\n" + "I-7\n" + "L12345678901L\n" + "F-2.5\n" + "S'old'\n" + "Vuni\n" + "t.";
  auto document = read(text);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->end_bytes(), text.size());
  const auto all = items(*document, document->root());
  ASSERT_EQ(all.size(), 17u);
  EXPECT_EQ(document->kind(all[0]), Kind::kNone);
  EXPECT_TRUE(document->boolean(all[1]));
  EXPECT_FALSE(document->boolean(all[2]));
  EXPECT_EQ(document->integer(all[3]), 255);
  EXPECT_EQ(document->integer(all[4]), 65535);
  EXPECT_EQ(document->integer(all[5]), -2);
  EXPECT_EQ(document->integer(all[6]), -32768);
  EXPECT_EQ(document->integer(all[7]), 0);
  EXPECT_EQ(document->kind(all[8]), Kind::kDouble);
  EXPECT_EQ(document->text(all[9]), "hi");
  EXPECT_EQ(document->kind(all[10]), Kind::kBytes);
  EXPECT_EQ(document->kind(all[11]), Kind::kBool);
  EXPECT_EQ(document->integer(all[12]), -7);
  EXPECT_EQ(document->integer(all[13]), 12345678901);
  EXPECT_EQ(document->kind(all[14]), Kind::kDouble);
  EXPECT_EQ(document->text(all[15]), "old");
  EXPECT_EQ(document->text(all[16]), "uni");
}

TEST_F(Pickle, KeepsTheOrderOfDicts) {
  auto document = read("\x80\x02}(X\x01\0\0\0bK\x01X\x01\0\0\0aK\x02uX\x01\0\0\0cK\x03s."s);
  ASSERT_TRUE(document) << document.error().text();
  std::string keys;
  document->each_pair(document->root(), [&](Id key, Id value) {
    keys += document->text(key);
    keys += std::to_string(document->integer(value));
    return true;
  });
  EXPECT_EQ(keys, "b1a2c3");
}

TEST_F(Pickle, GrowsSharedListsThroughTheMemo) {
  // [x, x] with x = [1], then x gets 2 through the memo.
  auto document = read("\x80\x02](]q\x01K\x01"s + "ah\x01" + "eh\x01K\x02" + "a0.");
  ASSERT_TRUE(document) << document.error().text();
  const auto outer = items(*document, document->root());
  ASSERT_EQ(outer.size(), 2u);
  EXPECT_EQ(outer[0], outer[1]);
  EXPECT_EQ(document->count(outer[0]), 2u);
}

TEST_F(Pickle, NotesACallWithoutMakingIt) {
  auto document = read(
      "\x80\x02"
      "ctorch\nSize\nK\x01K\x02\x86\x85R."s);
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->kind(document->root()), Kind::kCall);
  EXPECT_EQ(document->global(document->root()).text(), "torch.Size");
}

TEST_F(Pickle, TakesBothSpellingsOfAnOrderedDict) {
  for (const std::string& text : {"\x80\x02"
                                  "ccollections\nOrderedDict\n)R(X\x01\0\0\0aK\x01u."s,
                                  "ccollections\nOrderedDict\n((lp0\n(lp1\nVa\naI1\naatR."s}) {
    auto document = read(text);
    ASSERT_TRUE(document) << document.error().text();
    ASSERT_EQ(document->kind(document->root()), Kind::kDict);
    EXPECT_EQ(document->count(document->root()), 2u);
  }
}

TEST_F(Pickle, RefusesForeignNamesAndSaysWhich) {
  const char* const kNames[][2] = {{"os", "system"},
                                   {"posix", "system"},
                                   {"builtins", "eval"},
                                   {"builtins", "getattr"},
                                   {"subprocess", "Popen"},
                                   {"torch", "load"},
                                   {"torch._utils", "_rebuild_tensor_v2.__globals__"}};
  for (const auto& [module, name] : kNames) {
    const std::string lines = std::string(module) + "\n" + name + "\n";
    EXPECT_EQ(failure("\x80\x02"
                      "c"s +
                      lines + "X\x02\0\0\0id\x85R."s),
              ErrorCode::kRefused);
    EXPECT_NE(message_.find("asks to run "s + module + "." + name), std::string::npos) << message_;
    EXPECT_EQ(failure("(i" + lines + "."), ErrorCode::kRefused) << "INST";
  }
}

TEST_F(Pickle, RefusesForeignNamesFromTheStack) {
  EXPECT_EQ(failure("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."s), ErrorCode::kRefused);
  EXPECT_NE(message_.find("os.system"), std::string::npos) << message_;
}

TEST_F(Pickle, RefusesToCallWhatItMade) {
  EXPECT_EQ(failure("\x80\x02"
                    "ctorch\nSize\n)R)R."s),
            ErrorCode::kRefused);
  EXPECT_EQ(failure("\x80\x02K\x01)R."s), ErrorCode::kRefused);
}

TEST_F(Pickle, RefusesInstructionsThatMakeObjects) {
  EXPECT_EQ(failure("(ctorch\nSize\no."s), ErrorCode::kRefused);
  EXPECT_EQ(failure("\x80\x04"
                    "ctorch\nSize\n)}\x92."s),
            ErrorCode::kRefused);
  EXPECT_EQ(failure("\x80\x02\x82\x01."s), ErrorCode::kRefused);
}

TEST_F(Pickle, MakesNamesOfAttackersPrintable) {
  EXPECT_EQ(failure("c\x1b[2Jos\nsystem\n."s), ErrorCode::kRefused);
  EXPECT_EQ(message_.find('\x1b'), std::string::npos);
}

TEST_F(Pickle, FailsCleanlyWhereverItIsCut) {
  const std::string whole =
      "\x80\x02}q\0(X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\n(("
      "X\x07\0\0\0storagectorch\nFloatStorage\n"
      "X\x01\0\0\0"
      "0X\x03\0\0\0cpuK\x04tQK\0K\x04\x85K\x01\x85\x89"
      "ccollections\nOrderedDict\n)RtR"
      "\x8a\x02\x01\x02G12345678J1234Nu."s;
  ASSERT_TRUE(read(whole + "x")) << "the whole is well-formed";
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(failure(whole.substr(0, length)), ErrorCode::kCorrupt) << length;
}

TEST_F(Pickle, RejectsLengthsBeyondTheInput) {
  for (const std::string& text : {"X\xff\xff\xff\xff"
                                  "a"s,
                                  "\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                                  "a"s,
                                  "\x8b\xff\xff\xff\x7f"s, "B\0\0\0\x80"s,
                                  "\x95\xff\xff\xff\xff\xff\xff\xff\xff."s, "T\xff\xff\xff\xff."s})
    EXPECT_EQ(failure(text), ErrorCode::kCorrupt);
}

TEST_F(Pickle, RejectsBrokenStackDiscipline) {
  for (const std::string& text :
       {"."s,    "t."s,   "0."s,  "(."s,    "K\x01(0."s, "K\x01(\x85."s, "h\x05."s, "q\x01."s,
        "a."s,   "NNa."s, "Ns."s, "N(Nu."s, "}(Nu."s,    "}(Ne."s,       "](e"s,    "Nb."s,
        "NNb."s, "R."s,   "Q."s,  "\x93."s, "NN\x93."s,  "e."s,          "(NNNd."s})
    EXPECT_EQ(failure(text), ErrorCode::kCorrupt) << printable(text);
}

TEST_F(Pickle, RejectsMalformedNumbers) {
  for (const std::string& text :
       {"I\n."s, "I1x\n."s, "Lx\n."s, "F\n."s, "F1.x\n."s, "gx\n."s, "p-1\n."s, "S'x\n."s})
    EXPECT_EQ(failure(text), ErrorCode::kCorrupt) << printable(text);
}

TEST_F(Pickle, BoundsMarksAndMemoKeys) {
  EXPECT_EQ(failure(std::string(kMaxNesting + 1, '(')), ErrorCode::kCorrupt);
  EXPECT_EQ(failure("Nr\xff\xff\xff\xff."s), ErrorCode::kCorrupt);
}

TEST_F(Pickle, BoundsTheNumberOfValues) {
  EXPECT_EQ(failure(std::string(kMaxValues + 1, 'N')), ErrorCode::kCorrupt);
  EXPECT_EQ(failure("N" + std::string(kMaxValues, '2')), ErrorCode::kCorrupt);
}

TEST_F(Pickle, FreesDeepNestingWithoutRecursion) {
  // [[[[…]]]], a million deep: each list is appended to the one before it on the stack.
  constexpr size_t kDepth = 1'000'000;
  auto document = read(std::string(kDepth, ']') + std::string(kDepth - 1, 'a') + ".");
  ASSERT_TRUE(document) << document.error().text();
  EXPECT_EQ(document->size(), kDepth);
}

TEST_F(Pickle, SaysWhereInTheFileItFailed) {
  const std::string text = "N0?";
  auto document = parse(std::as_bytes(std::span(text.data(), text.size())), {"x.pt", 1000});
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().offset_bytes(), 1002u);
}

}  // namespace
}  // namespace ait::formats::pickle
