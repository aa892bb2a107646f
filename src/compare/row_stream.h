// Rows to be asked for one after the other: compare_pairs for a caller who takes his time and may
// leave.
//
//   RowStream stream(pairs, options);
//   for (Row row; stream.next(row, 1h) == RowStream::Next::kRow;) use(row);
//
// A thread of its own compares ahead of the caller and waits when kRowsAhead rows are ready, so
// memory is bounded however slow the caller is. The end of the stream is the end of that thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "compare/measure.h"
#include "match/pair.h"

namespace ait::compare {

class RowStream {
 public:
  static constexpr size_t kRowsAhead = 256;

  enum class Next : uint8_t {
    kRow,   // `row` is the next one
    kWait,  // it is not ready yet
    kEnd,   // there are no more
  };

  RowStream(std::shared_ptr<const match::Pairs> pairs, const Options& options);
  ~RowStream();  // gives up what was not asked for yet, and waits until the thread has ended
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // Waits for the next row, at most as long as `patience`. Throws what ended the comparison, if it
  // was an exception. Thread-safe.
  Next next(Row& row, std::chrono::milliseconds patience);

 private:
  void run(const Options& options);
  void push(Row&& row);

  const std::shared_ptr<const match::Pairs> pairs_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable taken_;
  std::deque<Row> rows_;
  bool ended_ = false;
  std::exception_ptr thrown_;
  std::thread thread_;  // the last member: it uses all the others
};

}  // namespace ait::compare
