#include "pending_mappings.h"

#include <exception>
#include <iterator>
#include <utility>

namespace ait::python {
namespace {

// While files are written without a pause, the mapping follows them after this at the latest.
constexpr auto kMappingDelay = std::chrono::milliseconds(100);
// Of the time, the share that may be spent on the mapping is one in so many: it is written anew
// each time, and grows.
constexpr int kMappingShare = 10;

}  // namespace

template <typename Work>
void PendingMappings::guarded(Work work) noexcept {
  try {
    work();
  } catch (const std::exception& error) {  // no memory
    const std::lock_guard lock(mutex_);
    if (!first_failure_) first_failure_ = error.what();
  }
}

void PendingMappings::add(Mapping&& mapping) noexcept {
  ++added_;
  guarded([&] {
    const std::lock_guard lock(mutex_);
    pairs_[std::move(mapping.folder)].push_back(std::move(mapping.pair));
  });
  if (Clock::now() > due_.load() + kMappingDelay) write();
}

int PendingMappings::write_when_due() noexcept {
  const auto wait = due_.load() - Clock::now();
  if (wait.count() > 0)
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
  write();
  return -1;
}

void PendingMappings::write() noexcept {
  guarded([&] {
    const std::lock_guard writing(writing_);
    Pairs pairs;
    {
      const std::lock_guard lock(mutex_);
      pairs.swap(pairs_);
    }
    if (pairs.empty()) return;
    const auto start = Clock::now();
    for (auto& [folder, added] : pairs) {
      if (const auto result = capture::add_to_metadata(folder, added))
        written_ += added.size();
      else
        try_again_later(folder, std::move(added), result.error());
    }
    const auto end = Clock::now();
    due_ = end + (end - start) * (kMappingShare - 1);
  });
}

std::optional<std::string> PendingMappings::first_failure() const {
  const std::lock_guard lock(mutex_);
  return first_failure_;
}

// The disk may have room by then. What came meanwhile is newer.
void PendingMappings::try_again_later(const std::string& folder,
                                      std::vector<capture::MappedPair>&& pairs,
                                      const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!first_failure_) first_failure_ = error.text();
  auto& waiting = pairs_[folder];
  waiting.insert(waiting.begin(), std::make_move_iterator(pairs.begin()),
                 std::make_move_iterator(pairs.end()));
}

}  // namespace ait::python
