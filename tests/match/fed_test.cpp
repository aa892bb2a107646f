#include "match/fed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_recording.h"

namespace ait::match {
namespace {

using capture::kAtbTraits;
using capture::kTorchTraits;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kWidth = 32;

// Two layers behind an embedding, in rounds 0 (a prompt of five tokens), 1 and 2 (a word each).
const char* const kTorch = R"(
  root
    embed  Embedding  in
    a      Layer
      x    Linear
    b      Layer
      x    Linear
)";
const char* const kLibrary = R"(
  0_WordEmbedding  in
  1_Layer
    0_LinearOperation
  2_Layer
    0_LinearOperation
)";

size_t tokens_in(size_t round) { return round == 0 ? 5 : 1; }

struct TinyFeed {
  TinyRun tiny;
  std::vector<Program> programs;
  RunSide side;
  std::string embed;
  std::string layer;

  explicit TinyFeed(bool is_torch)
      : tiny(is_torch ? kTorchTraits : kAtbTraits, is_torch ? kTorch : kLibrary, 1,
             {"0", "1", "2"}),
        programs(find_programs(tiny.recording)),
        side{tiny.recording, programs},
        embed(is_torch ? "root.embed" : "0_WordEmbedding"),
        layer(is_torch ? "root.a" : "1_Layer") {}

  // What went into the embedding, its input.
  void feed(size_t round, const std::vector<int64_t>& ids) {
    const uint32_t slot = tiny.recording.first_slot[tiny.operation(embed)];
    const std::string path = tiny.recording.record(0, round, slot).path;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    auto owner = std::make_shared<std::vector<int64_t>>(ids);
    const auto tensor = Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), DType::kInt64,
                                           Shape{static_cast<int64_t>(ids.size())});
    const std::vector<formats::NamedTensor> tensors = {{"", *tensor}};
    ASSERT_TRUE(formats::write_tensor_file(path, tensors, *formats::file_format_of(path)));
  }

  // What came out of it, and of the first layer.
  void look_up(size_t round, const std::string& words) {
    tiny.save(embed, random_matrix(words, tokens_in(round), kWidth), 0, round);
    tiny.save(layer, random_matrix("layer", tokens_in(round), kWidth), 0, round);
  }
};

Alignment aligned() {
  Alignment out;
  for (size_t round = 0; round < 3; ++round) {
    Step& step = out.steps.emplace_back();
    step.token = std::to_string(round);
    step.number = static_cast<int64_t>(round);
    step.is_prefill = round == 0;
    step.golden = step.actual = {0, round, round};
  }
  return out;
}

std::vector<std::string> marked(const TinyFeed& golden, const TinyFeed& actual,
                                Alignment& alignment) {
  Feeding feeding(golden.side, actual.side, [](const Step& step) {
    const Tokens tokens{tokens_in(step.golden.round), 1, 0};
    return std::pair(tokens, tokens);
  });
  mark_other_tokens(feeding, false, alignment);
  std::vector<std::string> out;
  for (const Step& step : alignment.steps) out.push_back(step.not_comparable);
  return out;
}

const std::string kFromOne = "the runs were fed different tokens from token 1 on.";

TEST(Fed, TokensAreOtherFromTheFirstOtherIdOn) {
  TinyFeed golden(true);
  TinyFeed actual(false);
  for (TinyFeed* run : {&golden, &actual}) run->feed(0, {7, 3, 9, 2, 4});
  golden.feed(1, {5});
  actual.feed(1, {6});
  for (TinyFeed* run : {&golden, &actual}) run->feed(2, {8});  // after another history
  Alignment alignment = aligned();
  EXPECT_THAT(marked(golden, actual, alignment), ElementsAre("", kFromOne, kFromOne));
  EXPECT_THAT(alignment.notes,
              ElementsAre(HasSubstr("different tokens from token 1 on (golden 5, my side 6)")));
}

TEST(Fed, TokensOfThePaddedAndOfTheRepeatedAreTheSame) {
  TinyFeed golden(true);
  TinyFeed actual(false);
  golden.feed(0, {7, 3, 9, 2, 4});
  actual.feed(0, {0, 0, 7, 3, 9, 2, 4});
  golden.feed(1, {5, 5});
  actual.feed(1, {5});
  Alignment alignment = aligned();
  EXPECT_THAT(marked(golden, actual, alignment), ElementsAre("", "", ""));
}

TEST(Fed, RowsTellWhereIdsWereNotRecorded) {
  TinyFeed golden(true);
  TinyFeed actual(false);
  for (TinyFeed* run : {&golden, &actual}) run->look_up(0, "prompt");
  golden.look_up(1, "one");
  actual.look_up(1, "other");
  Alignment alignment = aligned();
  EXPECT_THAT(marked(golden, actual, alignment), ElementsAre("", kFromOne, kFromOne));
}

TEST(Fed, RowsThatAreTheSameNowhereMayBeAFaultOfTheEmbedding) {
  TinyFeed golden(true);
  TinyFeed actual(false);
  golden.look_up(0, "one");
  actual.look_up(0, "other");
  Alignment alignment = aligned();
  EXPECT_THAT(marked(golden, actual, alignment), ElementsAre("", "", ""));
}

TEST(Fed, RowsOfTheSameIdsAreAFaultOfTheEmbedding) {
  TinyFeed golden(true);
  TinyFeed actual(false);
  for (TinyFeed* run : {&golden, &actual}) {
    run->feed(0, {7, 3, 9, 2, 4});
    run->feed(1, {5});
    run->look_up(0, "prompt");
  }
  golden.look_up(1, "one");
  actual.look_up(1, "other");
  Alignment alignment = aligned();
  EXPECT_THAT(marked(golden, actual, alignment), ElementsAre("", "", ""));
}

}  // namespace
}  // namespace ait::match
