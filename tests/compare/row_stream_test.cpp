#include "compare/row_stream.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "formats/write.h"
#include "tensors.h"
#include "test_files.h"

namespace ait::compare {
namespace {

using namespace std::chrono_literals;
using Next = RowStream::Next;

constexpr size_t kMany = 1'000'000;
constexpr size_t kThreads = 2;
// The engine has pairs on their way, too: a few batches for each thread.
constexpr size_t kFarAhead = 4 * RowStream::kRowsAhead;

class Stream : public ::testing::Test {
 protected:
  Stream() : file_((folder_.path() / "x.npy").string()) {
    EXPECT_TRUE(formats::write_tensor_file(file_, {{{"", *floats({1, 2, 3})}}},
                                           *formats::file_format_of(file_)));
  }

  // A file with itself, again and again; `asked_` counts the pairs that were made.
  std::shared_ptr<const match::Pairs> pairs(size_t count) {
    match::Pairs out;
    out.count = count;
    out.at = [this](size_t index) {
      ++asked_;
      match::Pair pair;
      pair.subject.name = std::to_string(index);
      pair.golden.records.resize(1);
      pair.golden.records[0].path = file_;
      pair.actual = pair.golden;
      return pair;
    };
    return std::make_shared<const match::Pairs>(std::move(out));
  }

  static Options options() {
    Options out;
    out.threads = kThreads;
    return out;
  }

  formats::TempFolder folder_;
  std::string file_;
  std::atomic<size_t> asked_ = 0;
};

TEST_F(Stream, GivesEveryRowInOrderAndThenTheEnd) {
  const size_t count = 3 * RowStream::kRowsAhead;
  RowStream stream(pairs(count), options());
  Row row;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(stream.next(row, 1h), Next::kRow);
    ASSERT_EQ(row.subject.name, std::to_string(i));
    ASSERT_TRUE(row.comparison->identical);
  }
  EXPECT_EQ(stream.next(row, 1h), Next::kEnd);
  EXPECT_EQ(stream.next(row, 0ms), Next::kEnd) << "and stays there";
}

TEST_F(Stream, OfNothingEndsAtOnce) {
  RowStream stream(pairs(0), options());
  Row row;
  EXPECT_EQ(stream.next(row, 1h), Next::kEnd);
}

TEST_F(Stream, WaitsForACallerWhoTakesHisTime) {
  RowStream stream(pairs(kMany), options());
  Row row;
  ASSERT_EQ(stream.next(row, 1h), Next::kRow);
  while (asked_ < RowStream::kRowsAhead) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // time enough to run away
  EXPECT_LT(asked_, kFarAhead);
}

TEST_F(Stream, DoesNotMakeItsCallerWaitLongerThanHeWants) {
  auto never = std::make_shared<match::Pairs>();
  std::atomic<bool> go_on = false;
  never->count = 1;
  never->at = [&](size_t) {
    while (!go_on) std::this_thread::sleep_for(1ms);
    return match::Pair();
  };
  RowStream stream(never, options());
  Row row;
  EXPECT_EQ(stream.next(row, 0ms), Next::kWait);
  EXPECT_EQ(stream.next(row, 5ms), Next::kWait);
  go_on = true;
  EXPECT_EQ(stream.next(row, 1h), Next::kRow);
}

TEST_F(Stream, EndsWithTheWorkWhenItsCallerLeaves) {
  for (const size_t taken : {0u, 3u}) {
    asked_ = 0;
    {
      RowStream stream(pairs(kMany), options());
      Row row;
      for (size_t i = 0; i < taken; ++i) ASSERT_EQ(stream.next(row, 1h), Next::kRow);
    }
    EXPECT_LT(asked_, kFarAhead);
  }
}

TEST_F(Stream, ThrowsOnceWhatEndedTheComparison) {
  auto bad = std::make_shared<match::Pairs>();
  bad->count = 1;
  bad->at = [](size_t) -> match::Pair { throw std::runtime_error("no such pair"); };
  Options one;
  one.threads = 1;
  RowStream stream(bad, one);
  Row row;
  EXPECT_THROW(stream.next(row, 1h), std::runtime_error);
  EXPECT_EQ(stream.next(row, 1h), Next::kEnd);
}

}  // namespace
}  // namespace ait::compare
