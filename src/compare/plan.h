// The pairs of a comparison in a file, so that they can be compared in parts, by many processes on many
// machines, without looking for them again (docs/cluster.md, docs/formats/plan.md).
//
//   auto path = write_plan("plans/run.plan", list, settings);
//   if (!path) return fail(path.error());
//
//   auto plan = Plan::open(*path);
//   if (!plan) return fail(plan.error());               // kCorrupt, kUnsupported
//   auto part = plan->part({3, 16});                     // the third of sixteen, balanced by bytes
//   compare_pairs(part->pairs, options, stop, …);       // of which part->number(i) is the number
//
// Where runs are spread over nodes, a record's path is "node:/path", and pairs that most of the bytes of are on
// one node lie together, so that parts do, too. Memory does not grow with the number of pairs, but for 24 bytes
// for every 256 of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compare/block_file.h"
#include "compare/measure.h"
#include "match/pair_paths.h"

namespace ait::compare {

inline constexpr uint32_t kPlanVersion = 2;

// What was asked for beside the paths, which parts and their merging have to know.
struct PlanSettings {
  MetricCompat compat = MetricCompat::kOwn;
  bool rows = false;  // Options::rows
  bool extended = false;
  bool statistics = false;
  std::string fail_on;  // as it was given
  std::string version;  // of the program that makes the plan
};

// Equal in a plan and in all parts that were made of it; no two plans have the same.
struct PlanIdentity {
  uint64_t pairs = 0;
  uint64_t bytes = 0;
  uint32_t checksum = 0;
  bool operator==(const PlanIdentity&) const = default;
};

// Which part of how many, from 1.
struct PartNumber {
  uint32_t part = 0;
  uint32_t parts = 0;
  bool operator==(const PartNumber&) const = default;
};
inline constexpr uint32_t kMaxParts = 1000000;

struct PlanFacts {
  match::PairList list;  // without pairs
  PlanSettings settings;
  PlanIdentity identity;
  std::vector<std::string> nodes;  // whose folders the runs lie in; none: paths are as they are
  std::optional<PartNumber> only;  // the plan holds the pairs of this part alone
};

// Where a run that is spread over nodes is listed: which path a listed file has, "node:/path".
using PathOf = std::function<std::string(const std::string& listed)>;

// Makes the pairs and looks up their sizes. `nodes` are the names before the colon in what `path_of` gives; none:
// paths are as they are. `stop` ends it with kInterrupted.
Result<std::string> write_plan(const std::string& path, const match::PairList& list,
                               const PlanSettings& settings, const std::atomic<bool>& stop,
                               const std::vector<std::string>& nodes = {},
                               const PathOf& path_of = {});

class Plan {
 public:
  static Result<Plan> open(const std::string& path);
  static Result<Plan> read(std::shared_ptr<const MappedFile> file);

  const PlanFacts& facts() const;
  size_t size() const { return facts().identity.pairs; }

  // All of them, by number. A pair that cannot be read is one without sides that says so. Not for several
  // threads at once.
  match::Pairs pairs() const;

  // The pairs of a part, by node.
  struct Part {
    // Pairs that follow each other, by their index in the part.
    struct Run {
      size_t index;
      uint64_t number;  // of the first among all pairs
    };
    match::Pairs pairs;
    std::vector<Run> runs;
    uint64_t bytes = 0;
    std::vector<uint64_t>
        bytes_of_node;  // those of pairs that are mostly on it, as PlanFacts::nodes

    uint64_t number(size_t index) const;
    uint64_t smallest() const;  // number; that of no pair where there is none
  };
  // kUsage where there is no such part, or another one is all that the plan holds; kCorrupt.
  Result<Part> part(PartNumber which) const;

  // The same bytes under that name.
  Result<void> copy_to(const std::string& folder, const std::string& name) const;
  // Writes a plan that holds this part alone. Returns its path.
  Result<std::string> cut(PartNumber which, const std::string& path) const;

 private:
  struct Inside;
  Plan() = default;
  std::shared_ptr<const Inside> inside_;
};

// The node of a record's path, an index into `nodes`; nothing where it is of none.
std::optional<size_t> node_of(const std::string& path, const std::vector<std::string>& nodes);

}  // namespace ait::compare
