#include "compare/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "compare/part.h"
#include "compare/row_store.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::compare {
namespace {

using formats::TempFolder;
using match::Pair;
using testing::HasSubstr;

const std::atomic<bool> kGoOn = false;

capture::TensorRecord record(const std::string& path) {
  capture::TensorRecord out;
  out.path = path;
  out.member = "w";
  out.rank = "1";
  out.round = "2";
  out.operation = "2_Layer/0_Linear";
  out.type = "LinearOperation";
  out.level = capture::Level::kKernel;
  out.moment = capture::Moment::kBefore;
  out.direction = capture::Direction::kInput;
  out.index = 3;
  out.call = 4;
  out.kept = capture::Kept::kStatistics;
  return out;
}

// Every field has another value than that of a pair of which nothing is known.
Pair full_pair(size_t number) {
  static const auto kRows =
      std::make_shared<const match::RowChoice>(match::RowChoice{9, {0, 4, 2, 8}, {7, 8}});
  static const auto kPadding = std::make_shared<const std::vector<bool>>(
      std::vector<bool>{true, false, true, true, false, false, false, true, true});
  Pair pair;
  pair.token = std::to_string(number / 10);
  pair.phase = match::Phase::kDecode;
  pair.subject = {"op" + std::to_string(number), "outtensor0", "m", "rank1", 64, 7};
  pair.golden.records = {record("golden/" + std::to_string(number))};
  pair.actual.records = {record("my/a"), record("my/b")};
  pair.golden.transform = {32, 8, 4, 16, true, match::Join::kNone};
  pair.actual.transform.join = match::Join::kColumns;
  pair.golden.rows = pair.actual.rows = kRows;
  pair.actual.dequantise = true;
  pair.padding = kPadding;
  pair.fit = match::Fit::kLastRows;
  pair.certainty = match::Certainty::kLikely;
  pair.why = "types and order fit";
  pair.alone = "nobody is like it";
  pair.unread = number % 2 == 1;
  pair.origin.is_known = true;
  pair.origin.operation = "root.model";
  pair.origin.kind = capture::OpKind::kNorm;
  if (number > 2) pair.origin.sources = {1, 3};
  pair.origin.is_copy = true;
  pair.origin.passed = {"view", "permute"};
  return pair;
}

match::PairList full_list(size_t count) {
  match::PairList list;
  list.kind = capture::RunKind::kOperations;
  list.pairs.count = count;
  list.pairs.at = full_pair;
  list.what = "a torch dump with a torch dump";
  list.problems = {Error(ErrorCode::kCorrupt, "x.json", 7) << "is cut short"};
  list.golden_completeness = {true, {}};
  list.actual_completeness = {std::nullopt, {"rank 3 has no manifest"}};
  match::AutomaticPairs& found = list.automatic.emplace();
  found.golden = {10, 8, 1, {{"too small", 2}, {"of another type", 1}}};
  found.actual.operations = 12;
  found.golden_layers = 3;
  found.actual_layers = 4;
  found.certain = 5;
  found.likely = 6;
  found.method = "by names";
  found.tokens = {{"0", "1", "2", true, true}, {"1", "2", "2", false, false}};
  found.notes = {"a warm-up was left out"};
  return list;
}

PlanSettings full_settings() { return {MetricCompat::kAit, true, true, false, "nan", "1.2.3"}; }

void expect_equal(const match::Side& a, const match::Side& b) {
  ASSERT_EQ(a.records.size(), b.records.size());
  for (size_t i = 0; i < a.records.size(); ++i) {
    const auto& x = a.records[i];
    const auto& y = b.records[i];
    EXPECT_EQ(std::tie(x.path, x.member, x.rank, x.round, x.operation, x.type, x.level, x.moment,
                       x.direction, x.index, x.call, x.kept),
              std::tie(y.path, y.member, y.rank, y.round, y.operation, y.type, y.level, y.moment,
                       y.direction, y.index, y.call, y.kept));
  }
  EXPECT_EQ(a.transform, b.transform);
  EXPECT_EQ(a.dequantise, b.dequantise);
  ASSERT_EQ(a.rows != nullptr, b.rows != nullptr);
  if (a.rows) {
    EXPECT_EQ(a.rows->count, b.rows->count);
    EXPECT_EQ(a.rows->rows, b.rows->rows);
    EXPECT_EQ(a.rows->last, b.rows->last);
  }
}

void expect_equal(const Pair& a, const Pair& b) {
  EXPECT_EQ(
      std::tie(a.token, a.phase, a.subject, a.origin, a.fit, a.certainty, a.why, a.alone, a.unread),
      std::tie(b.token, b.phase, b.subject, b.origin, b.fit, b.certainty, b.why, b.alone,
               b.unread));
  expect_equal(a.golden, b.golden);
  expect_equal(a.actual, b.actual);
  ASSERT_TRUE(a.padding && b.padding);
  EXPECT_EQ(*a.padding, *b.padding);
}

TEST(Plan, KeepsEveryFieldOfEveryPair) {
  const TempFolder folder;
  const auto path =
      write_plan(folder.path().native() + "/run.plan", full_list(600), full_settings(), kGoOn);
  ASSERT_TRUE(path) << path.error().text();
  const auto plan = Plan::open(*path);
  ASSERT_TRUE(plan) << plan.error().text();
  const match::Pairs pairs = plan->pairs();
  ASSERT_EQ(pairs.count, 600);
  for (const size_t i : {0, 255, 256, 599, 3}) expect_equal(pairs.at(i), full_pair(i));
}

TEST(Plan, KeepsWhatIsKnownOfAllPairs) {
  const TempFolder folder;
  const auto path =
      write_plan(folder.path().native() + "/run.plan", full_list(3), full_settings(), kGoOn);
  const auto plan = Plan::open(path.value());
  ASSERT_TRUE(plan) << plan.error().text();
  const match::PairList expected = full_list(0);
  const match::PairList& list = plan->facts().list;
  EXPECT_EQ(list.kind, expected.kind);
  EXPECT_EQ(list.what, expected.what);
  EXPECT_EQ(list.problems.at(0).text(), expected.problems[0].text());
  EXPECT_EQ(list.golden_completeness.complete, true);
  EXPECT_EQ(list.actual_completeness.complete, std::nullopt);
  EXPECT_EQ(list.actual_completeness.doubts, expected.actual_completeness.doubts);
  ASSERT_TRUE(list.automatic);
  EXPECT_EQ(list.automatic->golden.alone, expected.automatic->golden.alone);
  EXPECT_EQ(list.automatic->golden.copies, 1);
  EXPECT_EQ(list.automatic->actual.operations, 12);
  EXPECT_EQ(list.automatic->likely, 6);
  EXPECT_EQ(list.automatic->method, "by names");
  EXPECT_EQ(list.automatic->tokens.at(1).actual_round, "2");
  EXPECT_FALSE(list.automatic->tokens.at(1).phase_is_known);
  EXPECT_EQ(list.automatic->notes, expected.automatic->notes);
  const PlanSettings& settings = plan->facts().settings;
  EXPECT_TRUE(settings.compat == MetricCompat::kAit && settings.rows && settings.extended &&
              !settings.statistics && settings.fail_on == "nan" && settings.version == "1.2.3");
}

TEST(Plan, IsNoOtherPlanOfTheSamePairs) {
  const TempFolder folder;
  std::vector<PlanIdentity> found;
  for (const char* name : {"/one.plan", "/two.plan"}) {
    const auto path =
        write_plan(folder.path().native() + name, full_list(3), full_settings(), kGoOn);
    found.push_back(Plan::open(path.value()).value().facts().identity);
  }
  EXPECT_EQ(found[0].pairs, found[1].pairs);
  EXPECT_FALSE(found[0] == found[1]);
}

// The numbers of each part, and that together they are all.
std::vector<std::vector<uint64_t>> numbers_of_parts(const Plan& plan, uint32_t parts) {
  std::vector<std::vector<uint64_t>> out;
  std::multiset<uint64_t> all;
  for (uint32_t k = 1; k <= parts; ++k) {
    const auto part = plan.part({k, parts});
    EXPECT_TRUE(part) << part.error().text();
    auto& numbers = out.emplace_back();
    for (size_t i = 0; i < part->pairs.count; ++i) {
      numbers.push_back(part->number(i));
      EXPECT_EQ(part->pairs.at(i).subject.name, "op" + std::to_string(part->number(i)));
    }
    all.insert(numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all.size(), plan.size());
  EXPECT_EQ(std::set<uint64_t>(all.begin(), all.end()).size(), plan.size());
  return out;
}

TEST(Plan, EveryPairIsInOnePart) {
  const TempFolder folder;
  for (const size_t pairs : {1, 5, 256, 700}) {
    const auto path = write_plan(folder.path().native() + "/run.plan", full_list(pairs), {}, kGoOn);
    const auto plan = Plan::open(path.value());
    ASSERT_TRUE(plan);
    for (const uint32_t parts : {1, 2, 7, 16, 1000}) {
      const auto numbers = numbers_of_parts(*plan, parts);
      for (const auto& part : numbers)  // as many in each, since all sizes are the same
        EXPECT_LE(part.size(), pairs / parts + 1);
    }
  }
}

// Pairs of four nodes in turn.
std::string node_path(const std::string& listed) {
  if (!listed.starts_with("golden/")) return "n9:/" + listed;
  return "n" + std::to_string(std::stoul(listed.substr(7)) % 4) + ":/" + listed;
}

TEST(Plan, PairsOfANodeAreTogether) {
  const TempFolder folder;
  for (size_t i = 0; i < 700; ++i)
    folder.write("golden/" + std::to_string(i), std::string(100, 'x'));
  match::PairList list = full_list(700);
  list.pairs.at = [&](size_t i) {
    Pair pair = full_pair(i);
    pair.unread = false;
    pair.golden.records[0].member.clear();
    pair.golden.records[0].path = folder.path().native() + "/golden/" + std::to_string(i);
    return pair;
  };
  const auto path_of = [&](const std::string& listed) {
    return node_path(listed.starts_with(folder.path().native())
                         ? listed.substr(folder.path().native().size() + 1)
                         : listed);
  };
  const auto path = write_plan(folder.path().native() + "/run.plan", list, {}, kGoOn,
                               {"n0", "n1", "n2", "n3", "n9"}, path_of);
  const auto plan = Plan::open(path.value());
  ASSERT_TRUE(plan) << plan.error().text();
  for (size_t i = 0; i < 700; ++i)
    EXPECT_EQ(plan->pairs().at(i).subject.name, "op" + std::to_string(i));
  const auto numbers = numbers_of_parts(*plan, 4);
  for (size_t node = 0; node < 4; ++node) {
    EXPECT_EQ(numbers[node].size(), 175);
    for (const uint64_t number : numbers[node]) EXPECT_EQ(number % 4, node);
    const auto part = plan->part({static_cast<uint32_t>(node + 1), 4});
    EXPECT_EQ(part->bytes_of_node.at(node), 17500);
  }
  numbers_of_parts(*plan, 3);  // that are of two nodes each
}

TEST(Plan, APartCutOutHasTheSamePairs) {
  const TempFolder folder;
  const auto path =
      write_plan(folder.path().native() + "/run.plan", full_list(700), full_settings(), kGoOn);
  const auto plan = Plan::open(path.value());
  for (uint32_t k = 1; k <= 3; ++k) {
    const auto cut_path = plan->cut({k, 3}, folder.path().native() + "/cut.plan");
    ASSERT_TRUE(cut_path) << cut_path.error().text();
    const auto cut = Plan::open(*cut_path);
    ASSERT_TRUE(cut) << cut.error().text();
    const auto whole = plan->part({k, 3});
    const auto part = cut->part({k, 3});
    ASSERT_TRUE(part) << part.error().text();
    ASSERT_EQ(part->pairs.count, whole->pairs.count);
    EXPECT_EQ(part->bytes, whole->bytes);
    EXPECT_EQ(cut->facts().identity, plan->facts().identity);
    for (size_t i = 0; i < part->pairs.count; i += 50) {
      EXPECT_EQ(part->number(i), whole->number(i));
      expect_equal(part->pairs.at(i), whole->pairs.at(i));
    }
    EXPECT_THAT(cut->part({k % 3 + 1, 3}).error().text(), HasSubstr("alone"));
  }
}

TEST(Plan, StopsWhereItIsAskedTo) {
  const TempFolder folder;
  const std::atomic<bool> stop = true;
  const auto path = write_plan(folder.path().native() + "/run.plan", full_list(5), {}, stop);
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code(), ErrorCode::kInterrupted);
  EXPECT_FALSE(Plan::open(folder.path().native() + "/run.plan"));
}

// Rows of parts that are of several nodes come in the order of the pairs, and so do those of parts that are missing.
TEST(Parts, AreInTheOrderOfThePairsWhateverTheNodes) {
  const TempFolder folder;
  match::PairList list = full_list(700);
  const auto path = write_plan(folder.path().native() + "/run.plan", list, {}, kGoOn,
                               {"n0", "n1", "n2", "n3", "n9"}, node_path);
  const auto plan = Plan::open(path.value());
  ASSERT_TRUE(plan) << plan.error().text();
  for (const uint32_t missing : {0, 2, 3}) {
    const std::string parts_folder = folder.path().native() + "/parts" + std::to_string(missing);
    for (uint32_t k = 1; k <= 3; ++k) {
      if (k == missing) continue;
      const auto done = compare_part(*plan, {k, 3}, parts_folder, {}, kGoOn, [](uint64_t) {});
      ASSERT_TRUE(done) << done.error().text();
    }
    const auto parts = Parts::open(parts_folder);
    ASSERT_TRUE(parts) << parts.error().text();
    EXPECT_EQ(parts->missing().size(), missing == 0 ? 0 : 1);
    size_t rows = 0;
    const auto read = parts->each(kGoOn, [&](Row&& row, uint64_t) {
      EXPECT_EQ(row.subject.name, "op" + std::to_string(rows++));
    });
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(rows, 700);
  }
}

}  // namespace
}  // namespace ait::compare
