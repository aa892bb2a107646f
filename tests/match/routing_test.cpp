#include "match/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "match/automatic.h"
#include "match/rows.h"
#include "tiny_recording.h"

namespace ait::match {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using By = Routed::By;

// Each token goes to two experts.
Integers choice(const std::vector<int64_t>& experts) {
  return {{static_cast<int64_t>(experts.size() / 2), 2}, experts};
}

RoutedPair pair_of(Routed golden, Routed actual, uint8_t orders = kBothByToken) {
  return {{0, golden}, {0, actual}, orders};
}

const ReadRowsOf kNoRows = [](bool, size_t) { return RowTable{}; };

TEST(Routing, ComparesAllRowsWhereTheRoutersChoseTheSame) {
  const Integers same = choice({2, 1, 3, 2, 1, 3});
  for (const By by : {By::kAll, By::kCall, By::kExpert}) {
    const RoutedRows rows = rows_in_common(pair_of({by, 1}, {by, 1}), same, same, kNoRows);
    EXPECT_EQ(rows.golden, nullptr);
    EXPECT_EQ(rows.why_none, "");
  }
}

TEST(Routing, ComparesRowsOfTokensThatBothRoutersGaveToAnExpert) {
  const Integers golden = choice({2, 1, 3, 2, 1, 3});  // expert 1: tokens 0 and 2
  const Integers actual = choice({2, 1, 3, 1, 1, 3});  // tokens 0, 1 and 2
  const RoutedRows rows =
      rows_in_common(pair_of({By::kExpert, 1}, {By::kExpert, 1}), golden, actual, kNoRows);
  ASSERT_TRUE(rows.golden && rows.actual);
  EXPECT_EQ(rows.golden->count, 2u);
  EXPECT_THAT(rows.golden->rows, ElementsAre(0, 1));
  EXPECT_EQ(rows.actual->count, 3u);
  EXPECT_THAT(rows.actual->rows, ElementsAre(0, 2));
  // The first call is of the first expert that was chosen at all: 1 in both; the second of 2.
  EXPECT_THAT(
      rows_in_common(pair_of({By::kCall, 0}, {By::kCall, 0}), golden, actual, kNoRows).actual->rows,
      ElementsAre(0, 2));
}

// Golden's router chose expert 1 second for the first token, mine first.
TEST(Routing, TellsByDataWhetherRowsLieByTokenOrByChoice) {
  const auto row = [](const std::string& name) { return random_matrix(name, 1, 16).values; };
  const Integers golden = choice({2, 1, 1, 2});
  const Integers actual = choice({1, 2, 1, 2});
  const RowTable by_choice = {row("1"), row("0")};
  const RowTable by_token = {row("0"), row("1")};
  const auto read = [&](bool is_golden, size_t) { return is_golden ? by_choice : by_token; };
  const RoutedPair open = pair_of({By::kExpert, 1}, {By::kExpert, 1}, kAnyOrders);
  EXPECT_EQ(orders_by_data(open, golden, actual, read), kGoldenByChoice | kBothByChoice);
  EXPECT_EQ(orders_by_data(open, golden, actual, kNoRows), kAnyOrders);
  const RoutedRows rows = rows_in_common(open, golden, actual, read);
  ASSERT_TRUE(rows.golden && rows.actual);
  EXPECT_THAT(rows.golden->rows, ElementsAre(0, 1));
  EXPECT_THAT(rows.actual->rows, ElementsAre(1, 0));
  EXPECT_NE(rows_in_common(open, golden, actual, kNoRows).why_none, "");
  const RoutedPair known = pair_of({By::kExpert, 1}, {By::kExpert, 1}, kBothByChoice);
  EXPECT_THAT(rows_in_common(known, golden, actual, kNoRows).actual->rows, ElementsAre(1, 0));
}

TEST(Routing, SaysWhereAnExpertGotNoTokenInCommon) {
  const RoutedRows rows = rows_in_common(pair_of({By::kCall, 1}, {By::kCall, 1}),
                                         choice({2, 1, 2, 1}), choice({3, 1, 3, 1}), kNoRows);
  EXPECT_EQ(rows.why_none, "the routers of the two runs gave no token to the same expert here.");
}

// Of two tokens, each of which goes to two experts: by expert, and by token.
TEST(Routing, FindsRowsOfAllExpertsByTheirData) {
  const auto row = [](const std::string& name) { return random_matrix(name, 1, 16).values; };
  const RowTable by_expert = {row("0/1"), row("1/1"), row("0/2"), row("1/2")};
  const RowTable by_token = {row("0/2"), row("0/1"), row("1/1"), row("1/2")};
  const ReadRowsOf read = [&](bool is_golden, size_t) { return is_golden ? by_expert : by_token; };
  RoutedPair pair = pair_of({By::kAll, 0}, {By::kAll, 0});
  pair.is_rearranged = true;
  const Integers same = choice({2, 1, 1, 2});
  const RoutedRows rows = rows_in_common(pair, same, same, read);
  EXPECT_EQ(rows.why_none, "");
  EXPECT_THAT(rows.golden->rows, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(rows.actual->rows, ElementsAre(1, 2, 0, 3));
  // One row of mine is spoiled: what it should be is not guessed.
  const ReadRowsOf spoiled = [&](bool is_golden, size_t) {
    RowTable table = is_golden ? by_expert : by_token;
    if (!is_golden) table[2] = row("noise");
    return table;
  };
  EXPECT_NE(rows_in_common(pair, same, same, spoiled).why_none, "");
}

TEST(PairedRows, AreNearestToEachOtherAndToNoOther) {
  const auto row = [](const std::string& name) { return random_matrix(name, 1, 16).values; };
  EXPECT_THAT(pair_rows({row("a"), row("b"), row("c")}, {row("c"), row("d"), row("a")}),
              ElementsAre(Pair(0, 2), Pair(2, 0)));
  // Which of two that are the same?
  EXPECT_THAT(pair_rows({row("a"), row("b")}, {row("a"), row("a")}), ElementsAre());
}

// Layers of a router and two experts, each of which has a row for each of its tokens.
struct TinyMixture {
  TinyRun run{capture::kTorchTraits, R"(
    root  none
      embed  Embedding
      layers.0  none
        norm  RMSNorm
        gate  Router
        experts.0  Linear
        experts.1  Linear
      layers.1  none
        norm  RMSNorm
        gate  Router
        experts.0  Linear
        experts.1  Linear
  )"};
  std::vector<Program> programs;
  RunSide side{run.recording, programs};
  std::vector<Routing::Round> rounds = {{{0, 0, 0}, {4, 1}}};

  // `chosen` are two experts for each of four tokens.
  TinyMixture(const std::vector<int64_t>& chosen, const std::vector<size_t>& first,
              const std::vector<size_t>& second) {
    run.save("root.embed", random_matrix("embed", 4, 16));
    for (const std::string layer : {"root.layers.0", "root.layers.1"}) {
      run.save(layer + ".norm", random_matrix("norm", 4, 16));
      run.save(layer + ".gate", chosen, {4, 2}, DType::kInt64);
      save(layer + ".experts.0", first);
      save(layer + ".experts.1", second);
    }
    programs = find_programs(run.recording);
  }

  // A row of its own for each token.
  void save(const std::string& expert, const std::vector<size_t>& tokens) {
    std::vector<float> rows;
    for (const size_t token : tokens) {
      const Matrix row = random_matrix(expert + std::to_string(token), 1, 16);
      rows.insert(rows.end(), row.values.begin(), row.values.end());
    }
    run.save(expert, rows, {static_cast<int64_t>(tokens.size()), 16}, DType::kFloat32);
  }

  uint32_t slot(const std::string& name) const {
    return run.recording.first_slot[run.operation(name)];
  }
};

// What was paired with an operation of mine.
::ait::match::Pair pair_with(const TinyRun& golden, const TinyRun& actual,
                             const std::string& name) {
  const auto found = pair_automatically(std::make_shared<capture::Recording>(golden.recording),
                                        std::make_shared<capture::Recording>(actual.recording), {});
  for (size_t i = 0; found && i < found->pairs.count; ++i) {
    auto pair = found->pairs.at(i);
    if (pair.actual.present() && pair.actual.records[0].operation == name) return pair;
  }
  ADD_FAILURE() << "no pair of " << name;
  return {};
}

TEST(Routing, FindsExpertsByTheTokensThatTheirRouterGaveThem) {
  const TinyMixture sound({0, 1, 0, 2, 0, 1, 2, 3}, {0, 1, 2}, {0, 2});
  const Routing routing(sound.side, 0, sound.rounds);
  const Routed one = routing.of(sound.slot("root.layers.1.experts.1"));
  EXPECT_EQ(one.by, By::kExpert);
  EXPECT_EQ(one.number, 1u);
  EXPECT_TRUE(one.is_proven);
  EXPECT_EQ(routing.chosen_for(sound.slot("root.layers.1.experts.1")),
            sound.slot("root.layers.1.gate"));
  EXPECT_EQ(routing.of(sound.slot("root.layers.1.norm")).by, By::kNobody);
  EXPECT_EQ(routing.of(sound.slot("root.layers.1.gate")).by, By::kNobody);
}

// Only the second and the fourth of five layers have experts.
TEST(Routing, FindsExpertsInEverySecondLayer) {
  std::string text = "root  none\n  embed  Embedding\n";
  for (const int layer : {0, 1, 2, 3, 4}) {
    text += "  layers." + std::to_string(layer) + "  DecoderLayer\n    norm  RMSNorm\n";
    text += layer % 2 == 1 ? "    gate  Router\n    experts.0  Linear\n    experts.1  Linear\n"
                           : "    mlp  Linear\n";
  }
  TinyRun run{capture::kTorchTraits, text};
  run.save("root.embed", random_matrix("embed", 4, 16));
  for (const int number : {0, 1, 2, 3, 4}) {
    const std::string layer = "root.layers." + std::to_string(number);
    run.save(layer + ".norm", random_matrix(layer + "norm", 4, 16));
    if (number % 2 == 0) {
      run.save(layer + ".mlp", random_matrix(layer + "mlp", 4, 16));
      continue;
    }
    run.save(layer + ".gate", std::vector<int64_t>{0, 1, 0, 2, 0, 1, 2, 3}, {4, 2}, DType::kInt64);
    run.save(layer + ".experts.0", random_matrix(layer + "first", 3, 16).values, {3, 16},
             DType::kFloat32);
    run.save(layer + ".experts.1", random_matrix(layer + "second", 2, 16).values, {2, 16},
             DType::kFloat32);
  }
  const std::vector<Program> programs = find_programs(run.recording);
  ASSERT_EQ(programs[0].layers.size(), 5u);
  const std::vector<Routing::Round> rounds = {{{0, 0, 0}, {4, 1}}};
  const RunSide side{run.recording, programs};
  const Routing routing(side, 0, rounds);
  for (const std::string layer : {"root.layers.1", "root.layers.3"}) {
    const Routed of = routing.of(run.recording.first_slot[run.operation(layer + ".experts.1")]);
    EXPECT_EQ(of.by, By::kExpert) << layer;
    EXPECT_TRUE(of.is_proven) << layer;
  }
}

TEST(Routing, DoesNotTakeOtherNumbersOfRowsForExperts) {
  // The numbers of rows are none that this choice gives.
  const TinyMixture other({0, 1, 1, 2, 0, 1, 2, 3}, {0, 1, 2}, {0, 2});
  const Routing routing(other.side, 0, other.rounds);
  EXPECT_FALSE(routing.of(other.slot("root.layers.1.experts.1")).is_proven);
}

TEST(Routing, PairsTheRowsOfTokensThatBothRoutersGaveToTheSameExpert) {
  const TinyMixture golden({0, 1, 0, 2, 0, 1, 2, 3}, {0, 1, 2}, {0, 2});
  const TinyMixture actual({0, 1, 0, 1, 0, 3, 1, 2}, {0, 1, 2}, {0, 1, 3});
  const auto same = pair_with(golden.run, actual.run, "root.layers.0.experts.0");
  EXPECT_EQ(same.golden.records[0].operation, "root.layers.0.experts.0");
  EXPECT_EQ(same.golden.rows, nullptr);  // all of them
  const auto other = pair_with(golden.run, actual.run, "root.layers.0.experts.1");
  ASSERT_TRUE(other.golden.rows && other.actual.rows);
  EXPECT_THAT(other.golden.rows->rows, ElementsAre(0));
  EXPECT_THAT(other.actual.rows->rows, ElementsAre(0));
  EXPECT_EQ(other.actual.rows->count, 3u);
}

TEST(Routing, SaysWhereAnExpertOfTwoRunsHasNoTokenInCommon) {
  const TinyMixture golden({0, 1, 0, 1, 0, 2, 0, 2}, {0, 1, 2, 3}, {0, 1});
  const TinyMixture actual({0, 2, 0, 2, 0, 1, 0, 1}, {0, 1, 2, 3}, {2, 3});
  const auto pair = pair_with(golden.run, actual.run, "root.layers.0.experts.1");
  EXPECT_THAT(pair.alone, ::testing::HasSubstr("gave no token to the same expert"));
}

// One module for all experts, whose activation is called for one after the other.
struct TinyCalls {
  TinyRun run{capture::kTorchTraits, R"(
    root  none
      layers.0  none
        norm  RMSNorm
        gate  Router
        act  SiLU
        act#1  SiLU
      layers.1  none
        norm  RMSNorm
        gate  Router
        act  SiLU
        act#1  SiLU
  )"};
  std::vector<Program> programs;
  RunSide side{run.recording, programs};
  std::vector<Routing::Round> rounds = {{{0, 0, 0}, {4, 1}}};

  TinyCalls(const std::vector<int64_t>& chosen, int64_t first, int64_t second) {
    for (const std::string layer : {"root.layers.0", "root.layers.1"}) {
      run.save(layer + ".norm", random_matrix("norm", 4, 16));
      if (chosen.empty())
        run.save(layer + ".gate", random_matrix("gate", 4, 16));
      else
        run.save(layer + ".gate", chosen, {4, static_cast<int64_t>(chosen.size() / 4)},
                 DType::kInt64);
      const std::string act = layer + ".act";
      run.recording.slots[run.recording.first_slot[run.operation(act + "#1")]].call = 1;
      for (const auto& [name, rows] : {std::pair(act, first), {act + "#1", second}})
        run.save(name, random_matrix(name, static_cast<size_t>(rows), 16).values, {rows, 16},
                 DType::kFloat32);
    }
    programs = find_programs(run.recording);
  }
};

TEST(Routing, KnowsTheOrderOfCallsByTheirNumbersOfRows) {
  const std::vector<int64_t> chosen = {0, 0, 0, 5};
  const TinyCalls forwards(chosen, 3, 1);
  const Routing told(forwards.side, 0, forwards.rounds);
  EXPECT_TRUE(told.calls_are_proven());
  EXPECT_TRUE(told.calls_tell_order());
  const TinyCalls backwards(chosen, 1, 3);
  EXPECT_FALSE(Routing(backwards.side, 0, backwards.rounds).calls_are_proven());
  // Two and two: it might be the other way round.
  const TinyCalls equal({0, 0, 5, 5}, 2, 2);
  const Routing open(equal.side, 0, equal.rounds);
  EXPECT_TRUE(open.calls_are_proven());
  EXPECT_FALSE(open.calls_tell_order());
}

TEST(Routing, KnowsInWhichCallAFunctionWas) {
  std::string list = "root  none\n";
  for (const std::string layer : {"0", "1"})
    list += "  layers." + layer + "  none\n    gate  Router\n" +
            "    act  SiLU\n      silu  Functional.silu\n" +
            "    act#1  SiLU\n      silu  Functional.silu\n";
  TinyRun run(capture::kTorchTraits, list);
  for (const std::string layer : {"root.layers.0", "root.layers.1"}) {
    run.save(layer + ".gate", std::vector<int64_t>{0, 0, 0, 5}, {4, 1}, DType::kInt64);
    for (const auto& [call, rows] : {std::pair(layer + ".act", 3), {layer + ".act#1", 1}})
      for (const std::string& name : {call, call + ".silu"})
        run.save(name, random_matrix(name, static_cast<size_t>(rows), 16).values, {rows, 16},
                 DType::kFloat32);
  }
  const std::vector<Program> programs = find_programs(run.recording);
  const std::vector<Routing::Round> rounds = {{{0, 0, 0}, {4, 1}}};
  const RunSide side{run.recording, programs};
  const Routing routing(side, 0, rounds);
  for (const auto& [name, number] : {std::pair("act.silu", 0u), {"act#1.silu", 1u}}) {
    const uint32_t operation = run.operation(std::string("root.layers.0.") + name);
    const Routed routed = routing.of(run.recording.first_slot[operation]);
    EXPECT_EQ(routed.by, By::kCall) << name;
    EXPECT_EQ(routed.number, number) << name;
    EXPECT_TRUE(routed.is_proven) << name;
  }
}

TEST(Routing, DoesNotTakeWhatIsCalledAgainForExpertsWithoutARouter) {
  const TinyCalls golden({}, 3, 2);
  const auto pair = pair_with(golden.run, TinyCalls({}, 3, 2).run, "root.layers.0.act#1");
  EXPECT_TRUE(pair.complete()) << pair.alone;
  const auto other = pair_with(golden.run, TinyCalls({}, 2, 3).run, "root.layers.0.act#1");
  EXPECT_FALSE(other.complete());
}

}  // namespace
}  // namespace ait::match
