// Follows a recording of a torch model, while it grows or afterwards: reads the statistics of each round
// once it is complete, and says where they first leave their own history, or those of a golden run.
//
//   Follower follower({.path = "out/ait_dump", .conditions = *parse_conditions("nan,spike=10")});
//   while (!follower.has_ended()) {
//     if (auto read = follower.pass(true); !read) return fail(read.error());
//     for (const Departure& each : follower.take_new()) tell(each);
//     wait_a_second();
//   }
//
// A round is read when the manifest says that it has ended and its files have stayed as they are since
// the pass before. Tensors of which no table tells are measured. Only outputs count: masks hold
// infinities, and an input is somebody's output.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"
#include "capture/round_statistics.h"
#include "watch/trigger.h"

namespace ait::watch {

struct FollowOptions {
  std::string path;
  std::string golden{};  // another dump of the model; empty: none
  std::vector<Condition> conditions{};
  // Of golden: the relative euclidean distance that statistics must prove.
  double distance = 0.05;
};

// Where statistics are not what they were to be.
struct Departure {
  std::string folder;  // "cpu_4711"
  uint64_t round = 0;
  std::string module;
  std::string tensor;
  bool from_golden = false;  // else from the history
  std::string condition{};   // "spike=10"; of golden "distance>0.05", "nan" or "inf"
  std::string statistic{};   // "norm"
  double value = 0;
  std::optional<double> usual{};  // what it was in the rounds before, or is in golden
};

struct FollowedFolder {
  std::string name;
  std::string state;    // "recording", "complete", "incomplete"; "gone": its process was killed
  uint64_t rounds = 0;  // that were read
  std::optional<uint64_t> last_round{};
};

struct Known;

class Follower {
 public:
  explicit Follower(FollowOptions options);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Reads what is new. `live` leaves out rounds that may still be written. kNotFound where there is
  // no recording (yet).
  Result<void> pass(bool live);

  // Every recording has ended, and all of it has been read.
  bool has_ended() const;

  // Those found since the last time, in the order of rounds.
  std::vector<Departure> take_new();
  // The first of either kind.
  const std::optional<Departure>& first_of_history() const { return first_of_history_; }
  const std::optional<Departure>& first_of_golden() const { return first_of_golden_; }
  uint64_t departures() const { return departures_; }

  std::vector<FollowedFolder> folders() const;
  uint64_t tensors() const { return tensors_; }    // whose statistics were read
  uint64_t compared() const { return compared_; }  // with golden
  const std::vector<Error>& problems() const { return problems_; }

 private:
  struct Folder;

  Folder& folder_of(const capture::Rank& rank);
  Result<void> find_golden();
  void read_new(Folder& folder, bool live);
  void read_round(Folder& folder, uint64_t round);
  void compare(Folder& folder, uint64_t round, const std::vector<capture::RoundTensor>& tensors,
               const std::vector<Known>& values);
  void found(Departure departure);
  void problem(const Error& error);

  const FollowOptions options_;
  std::vector<capture::Rank> golden_;
  std::map<std::string, std::unique_ptr<Folder>> folders_;  // by path
  std::vector<Departure> new_;
  std::optional<Departure> first_of_history_;
  std::optional<Departure> first_of_golden_;
  uint64_t departures_ = 0;
  uint64_t tensors_ = 0;
  uint64_t compared_ = 0;
  std::vector<Error> problems_;
};

}  // namespace ait::watch
