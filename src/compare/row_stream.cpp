#include "compare/row_stream.h"

#include <utility>

#include "compare/engine.h"

namespace ait::compare {

RowStream::RowStream(std::shared_ptr<const match::Pairs> pairs, const Options& options)
    : pairs_(std::move(pairs)), thread_([this, options] { run(options); }) {}

RowStream::~RowStream() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  taken_.notify_one();
  thread_.join();
}

void RowStream::run(const Options& options) {
  std::exception_ptr thrown;
  try {
    compare_pairs(*pairs_, options, stop_, [this](Row&& row, uint64_t) { push(std::move(row)); });
  } catch (...) {
    thrown = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  thrown_ = std::move(thrown);
  ended_ = true;
  arrived_.notify_all();
}

void RowStream::push(Row&& row) {
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [&] { return stop_ || rows_.size() < kRowsAhead; });
  if (stop_) return;
  rows_.push_back(std::move(row));
  arrived_.notify_one();
}

RowStream::Next RowStream::next(Row& row, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, patience, [&] { return ended_ || !rows_.empty(); });
  if (!rows_.empty()) {
    row = std::move(rows_.front());
    rows_.pop_front();
    taken_.notify_one();
    return Next::kRow;
  }
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return ended_ ? Next::kEnd : Next::kWait;
}

}  // namespace ait::compare
