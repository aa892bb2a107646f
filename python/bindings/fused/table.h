// The statistics of one round: which modules were called, in which order, and the numbers of each tensor, as soon as they
// are known. Rows are added by whoever holds the interpreter's lock; the table is written by a thread that does not.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fused/device.h"
#include "tensor/dtype.h"

namespace ait::python::fused {

// A module, or a function, under the names that it goes by.
struct Subject {
  std::string name;    // "root.model.norm"
  std::string type;    // "LlamaRMSNorm"
  std::string folder;  // of its files in the round's folder, without "#1"
};

// Of a Result whose counts nobody knows, in place of 1 in `done`: torch's operations do not give them.
inline constexpr unsigned long long kDoneWithoutCounts = 2;

// Who measured a tensor.
enum class Way : uint8_t { kNobody, kCpu, kKernel, kTorch };
inline constexpr size_t kWays = 4;

// What could not be stored, for which reason, how often, and what was the first.
struct Unstored {
  uint64_t count = 0;
  std::string first;
};

// The same text always at the same address. For as long as the process lives: names of tensors are few.
const std::string* interned(std::string_view text);

class Table {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `captured`: of calls while a CUDA graph is captured, which have no numbers before the graph is replayed.
  // `with_sketches`: there is a column for them, empty where a tensor has none.
  Table(uint64_t number, bool captured, bool with_sketches = false)
      : number_(number), captured_(captured), with_sketches_(with_sketches) {}
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  uint64_t number() const { return number_; }
  bool captured() const { return captured_; }

  // A call of a module: the how-manieth of all is kept, and of this one "#1" and so on.
  uint32_t begin_call(std::shared_ptr<const Subject> subject);
  uint32_t begin_function(std::shared_ptr<const Subject> subject);
  void end_call(uint32_t call);
  std::string place_of(uint32_t call) const;  // "root.fc#1"

  // A row and where its numbers are to be put; null for an empty tensor, which has none.
  Result* add_row(uint32_t call, const std::string* stem, DType dtype,
                  std::span<const int64_t> shape, Way way, Device* device);
  // The same tensor as that of an earlier row.
  void add_row_again(uint32_t call, const std::string* stem, uint32_t row);
  // Whether there are rows that the last call of this did not see.
  bool has_grown();
  uint32_t last_row() const { return static_cast<uint32_t>(rows_.size()) - 1; }
  void set(uint32_t row, const Result& numbers);
  // What is kept beside the numbers of a row (metrics/sketch.h).
  void add_sketch(uint32_t row, std::string text);

  // The calls that were captured have run again, on `stream`: the same rows with the numbers of this time.
  Status append_replay(const Table& captured, Stream stream);

  void note_launch(Device& device, Stream stream);
  template <typename Place>
  void note_unstored(const std::string& reason, Place place) {
    Unstored& entry = unstored_[reason];
    if (entry.count++ == 0) entry.first = place();
  }
  void note_failure(Status status);

  // Behind the last launch so far. To be called with the interpreter's lock.
  void mark_end();
  // Waits for the numbers of all rows up to the latest mark.
  void wait();

  // What became of the calls.
  std::map<std::string, std::vector<uint32_t>> calls() const;
  std::vector<std::string> ended() const;  // each once
  // The same number for rounds in which calls of the same modules have ended, so that nobody has to ask for their names.
  uint64_t ended_print() const { return ended_print_; }
  uint32_t module_calls() const { return module_calls_; }
  std::map<std::string, Unstored> take_unstored();
  std::array<uint64_t, kWays> ways() const { return ways_; }
  uint64_t again() const { return again_; }
  uint64_t sketches() const { return sketches_.size(); }
  Status failure() const;  // of the device

  struct Line {
    std::string file;
    const Result* result;  // null if nothing is known
  };
  std::vector<Line> lines() const;

  // Calls visit(place, stem, shape, numbers) for each row whose numbers are known.
  template <typename Visit>
  void each_known(Visit visit) const {
    const std::lock_guard lock(mutex_);
    for (const Row& row : rows_)
      if (row.result != nullptr && row.result->done != 0)
        visit(place_of(row.call), *row.stem, shape_of(row), *row.result);
  }

  // The table as text. `per_module` gives a table for each call, by its place.
  std::string text() const;
  std::vector<std::pair<std::string, std::string>> texts_per_module() const;

 private:
  struct Module {
    std::vector<uint32_t> places;  // of its calls, among all
    bool ended = false;            // one of them
  };
  struct Call {
    std::shared_ptr<const Subject> subject;
    uint32_t again;
    Module* module;  // null for a function
  };
  struct Row {
    uint32_t call;
    uint32_t first_dim;
    uint32_t same_as;
    uint32_t sketch;  // which one; kNone
    uint8_t rank;
    DType dtype;
    const std::string* stem;
    Result* result;
  };

  Result* next_result(Device* device);
  void note_end(uint32_t call);
  uint32_t add_call(std::shared_ptr<const Subject> subject, bool of_module);
  std::string shape_of(const Row& row) const;  // "(4, 8)"
  void append_header(std::string& text, bool of_round) const;
  void append_row(std::string& text, const Row& row, bool of_round) const;

  const uint64_t number_;
  const bool captured_;
  const bool with_sketches_;
  // Guards what follows against the writer's thread; among themselves, those who add have the interpreter's lock.
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::unordered_map<std::string, Module> modules_;  // whose members stay where they are
  uint64_t ended_print_ = 0;
  uint32_t module_calls_ = 0;
  std::vector<Row> rows_;
  std::vector<int64_t> dims_;
  std::deque<Result> own_;  // of tensors that no kernel measures
  std::deque<std::string> sketches_;
  // Page-locked, or on the device itself if the table is of a capture.
  struct Stretch {
    Result* results;
    size_t used;
    Device* device;
  };
  std::vector<Stretch> stretches_;
  struct Used {
    Device* device;
    Stream stream;
  };
  std::vector<Used> streams_;
  std::vector<Mark> marks_;
  bool launched_ = false;  // since the latest mark
  Status failure_ = 0;
  std::map<std::string, Unstored> unstored_;
  std::array<uint64_t, kWays> ways_{};
  uint64_t again_ = 0;
  size_t seen_rows_ = 0;
};

}  // namespace ait::python::fused
