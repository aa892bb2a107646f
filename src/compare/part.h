// One part of a planned comparison, compared into a store of its own, and all of them put together again.
//
//   auto plan = Plan::open("run.plan");
//   auto done = compare_part(*plan, {3, 16}, "parts", options, stop, [](uint64_t bytes) {});
//
//   auto parts = Parts::open("parts");                 // plan and stores of the folder
//   if (!parts) return fail(parts.error());
//   for (const uint32_t part : parts->missing()) log_warning(…);
//   auto read = parts->each(stop, [&](Row&& row, uint64_t) { locator.add(std::move(row), 0); });
//
// The rows are those of one process, in its order; a pair of a part that is missing is a row that says so. Running
// a part again replaces its store by an equal one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "compare/engine.h"
#include "compare/plan.h"

namespace ait::compare {

inline constexpr uint32_t kPartVersion = 1;

struct PartDone {
  std::string path;  // of its store
  uint64_t pairs = 0;
  uint64_t rows = 0;
  uint64_t bytes = 0;  // compared
};

// Puts a copy of the plan into the folder, too, if it holds none. kUsage where it holds that of another
// comparison; kInterrupted, and no store, where `stop` ended it. `advanced` hears the bytes of every row.
Result<PartDone> compare_part(const Plan& plan, PartNumber which, const std::string& folder,
                              const Options& options, const std::atomic<bool>& stop,
                              const std::function<void(uint64_t bytes)>& advanced);

// The parts of a plan that a folder holds.
class Parts {
 public:
  // kNotFound, kUsage: no plan, no parts, or parts of two divisions. kCorrupt, kUnsupported: what is in a file.
  static Result<Parts> open(const std::string& folder);

  const Plan& plan() const { return plan_; }
  uint32_t count() const { return count_; }
  std::vector<uint32_t> missing() const;  // numbers, from 1

  // Every row in the order of the pairs; fails at the first that cannot be read.
  Result<void> each(const std::atomic<bool>& stop,
                    const std::function<void(Row&& row, uint64_t bytes)>& emit) const;

 private:
  struct Found;
  explicit Parts(Plan plan) : plan_(std::move(plan)) {}

  Plan plan_;
  uint32_t count_ = 0;
  std::vector<std::shared_ptr<const Found>> found_;  // by number; null: missing
};

// What is wrong with a store of a part, if anything: for tests.
Result<size_t> rows_of_part(std::shared_ptr<const MappedFile> file);

}  // namespace ait::compare
