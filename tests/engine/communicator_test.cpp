// Collective operations between processes, and what happens when one of them goes away.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "atb/communicator.h"
#include "tensors.h"

namespace {

using atb::Communicator;
using atb_test::Make;
using atb_test::RunOnce;
using atb_test::Values;

// Runs `work` as every rank; false in a child fails the test.
void AsRanks(size_t ranks, const std::function<bool(Communicator&)>& work) {
  const auto communicator = Communicator::create(ranks);
  ASSERT_NE(communicator, nullptr);
  std::vector<pid_t> children;
  for (size_t rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      communicator->join(rank);
      _exit(work(*communicator) ? 0 : 1);
    }
    children.push_back(child);
  }
  communicator->join(0);
  EXPECT_TRUE(work(*communicator));
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

std::string Param(const Communicator& c, const std::string& more = "") {
  return "{\"rank\":" + std::to_string(c.rank()) + ",\"rankSize\":" + std::to_string(c.size()) +
         more + "}";
}

// Larger than what the ranks can show each other at once.
constexpr int64_t kLong = 700'001;

TEST(Communicator, ReducesInRankOrderAndInPieces) {
  AsRanks(3, [](Communicator& c) {
    atb::Context context(0);
    context.set_communicator(&c);
    Values x({kLong}), y({kLong});
    for (size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = static_cast<float>((c.rank() + 1) * (i % 1000));
    const auto sum = Make("AllReduceOperation", Param(c));
    if (!RunOnce(*sum, {{x.tensor()}, {y.tensor()}}, context).ok()) return false;
    for (size_t i = 0; i < y.data.size(); ++i)
      if (y.data[i] != static_cast<float>(6 * (i % 1000))) return false;
    const auto largest = Make("AllReduceOperation", Param(c, R"(,"allReduceType":"max")"));
    if (!RunOnce(*largest, {{x.tensor()}, {y.tensor()}}, context).ok()) return false;
    return y.data[7] == 21 && y.data[kLong - 1] == 3 * 0;
  });
}

TEST(Communicator, GathersInRankOrder) {
  AsRanks(2, [](Communicator& c) {
    atb::Context context(0);
    context.set_communicator(&c);
    Values x({2, 3}), y({2, 2, 3});
    for (float& value : x.data) value = static_cast<float>(c.rank());
    const auto gather = Make("AllGatherOperation", Param(c));
    if (!RunOnce(*gather, {{x.tensor()}, {y.tensor()}}, context).ok()) return false;
    for (size_t i = 0; i < y.data.size(); ++i)
      if (y.data[i] != (i < 6 ? 0.0f : 1.0f)) return false;
    return true;
  });
}

TEST(Communicator, AFailedRankDoesNotLeaveTheOthersWaiting) {
  const auto communicator = Communicator::create(2);
  ASSERT_NE(communicator, nullptr);
  EXPECT_TRUE(communicator->fail());
  EXPECT_FALSE(communicator->fail());
  Values x({4}), y({4});
  EXPECT_EQ(communicator->all_reduce(x.tensor(), y.tensor(), Communicator::Reduction::kSum).code(),
            atb::ErrorType::kRtFail);
}

TEST(Communicator, APeerThatIsGoneIsNoticed) {
  const auto communicator = Communicator::create(2);
  ASSERT_NE(communicator, nullptr);
  communicator->set_peer_check([] { return false; });
  Values x({4}), y({8});
  EXPECT_FALSE(communicator->all_gather(x.tensor(), y.tensor()).ok());
}

TEST(Communicator, ParametersMustAgreeWithTheGroup) {
  const auto communicator = Communicator::create(2);
  atb::Context context(0);
  context.set_communicator(communicator.get());
  Values x({4}), y({4});
  const auto sum = Make("AllReduceOperation", R"({"rank":1,"rankSize":2})");
  EXPECT_EQ(RunOnce(*sum, {{x.tensor()}, {y.tensor()}}, context).code(),
            atb::ErrorType::kInvalidParam);
}

}  // namespace
