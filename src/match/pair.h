// Who is to be compared with whom, and what makes the two comparable. A matcher turns two captures
// into these.
//
//   Pair pair;
//   pair.golden = golden_record;                        // the simple case: tensor against tensor
//   pair.actual.records = {rank0, rank1};               // the other side lies in two shards
//   pair.actual.transform.join = Join::kColumns;
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/capture.h"
#include "capture/op_kind.h"

namespace ait::match {

// How several records make one tensor.
enum class Join : uint8_t {
  kNone,     // there is one
  kColumns,  // side by side: shards of a column-parallel layer
  kSum,      // partial results
};

// What is done to the records of a side before it is compared. A tensor counts as a matrix here:
// its rows are tokens, `columns` wide; a tensor of [tokens, heads, size] has heads * size columns.
struct Transform {
  int64_t columns = 0;  // 0: the tensor as it is, and nothing below but `join` and `heads_first`
  int64_t first = 0;    // columns [first, first + taken) of every `period`
  int64_t taken = 0;    // 0: all
  int64_t period = 0;   // 0: one stretch in each row
  bool heads_first = false;  // [heads, tokens, size] as [tokens, heads, size]
  Join join = Join::kNone;

  bool is_identity() const { return taken == 0 && !heads_first && join == Join::kNone; }
  std::string text() const;  // "columns 64 to 95 of each, 2 shards side by side"; empty for none
  bool operator==(const Transform&) const = default;
};

// Which rows of a side's tensors are compared, where the two sides hold other tokens or hold them in
// another order: a batch padded to one length against sequences packed without padding.
struct RowChoice {
  size_t count = 0;            // rows of a tensor that has one for each token
  std::vector<uint32_t> rows;  // those that are compared, in order; none: all
  std::vector<uint32_t> last;  // of each sequence, the row of its last token

  size_t compared() const { return rows.empty() ? count : rows.size(); }
};

struct Side {
  std::vector<capture::TensorRecord> records;  // none: there is no such side
  Transform transform;
  std::shared_ptr<const RowChoice> rows;  // null: all, as they lie
  // The records are a quantised weight, its scale and, where it has one, its offset: what is
  // compared is (weight - offset) * scale.
  bool dequantise = false;

  Side() = default;
  Side(capture::TensorRecord record) { records.push_back(std::move(record)); }  // NOLINT

  bool present() const { return !records.empty(); }
  // A single tensor as it lies in its file.
  bool plain() const { return records.size() == 1 && transform.is_identity(); }
};

// How sure a pairing is.
enum class Certainty : uint8_t {
  kCertain,  // a person said so, names are the same, or the data agree and nothing else does
  kLikely,   // types, order and shapes fit, and nothing else does
};
const char* word(Certainty certainty);  // "certain"

// What may be done where the two sides still have different numbers of rows.
enum class Fit : uint8_t {
  kNone,
  kRepeat,    // the smaller is repeated along its first dimension: another batch of the same input
  kLastRows,  // the last row of each sequence: a head that is computed only where it is needed
};

// What is compared, as facts. A report makes one text of them: tables/comparison.h.
struct Subject {
  std::string name = "0";  // an operation, a file, a weight, a label
  std::string tensor;      // of an operation: "outtensor0", "output_0"; empty: the name says it all
  std::string member;      // one of several tensors in two files that were paired as a whole
  std::string rank;        // where every rank is compared for itself: which of them
  std::optional<int64_t> first_column;  // where only the columns from this one on are compared
  std::optional<uint32_t> layer;        // of the model, from 0; nothing outside, or not known

  bool operator==(const Subject&) const = default;
};

// How a value of my side came about, as far as its recording tells. Rows are those of one token.
struct Origin {
  bool is_known = false;  // false: nothing tells, and the rest says nothing
  // What computed it: the operation that put it out; of what goes into a module and came out of
  // none, the module around that one.
  std::string operation;
  capture::OpKind kind = capture::OpKind::kUnknown;
  // The rows whose values went into it, each as how many rows before this one, ascending. None: it
  // came from outside, or from values that have no rows.
  std::vector<uint32_t> sources;
  bool is_copy = false;  // it holds what its only source holds
  // Operations between the sources and it that have no row, since nothing of golden is like their
  // results, in the order in which they ran.
  std::vector<std::string> passed;

  bool operator==(const Origin&) const = default;
};

// What a model does for a token.
enum class Phase : uint8_t { kUnknown, kPrefill, kDecode };

struct Pair {
  std::string token = "0";
  Phase phase = Phase::kUnknown;
  Subject subject;
  Side golden;
  Side actual;
  Origin origin;
  // Rows of the tensors (all dimensions but the last) that hold no token, but fill a sequence up;
  // null: none is known. Nobody minds what they hold.
  std::shared_ptr<const std::vector<bool>> padding;
  Fit fit = Fit::kNone;
  Certainty certainty = Certainty::kCertain;
  std::string why;      // one short sentence; empty where the kind of comparison says it already
  std::string alone;    // of a side without a partner: why that is so
  bool unread = false;  // of such a side: it is named, and nothing of it is looked at

  bool complete() const { return golden.present() && actual.present(); }
};

// Pairs that are made when they are needed: there may be millions.
struct Pairs {
  size_t count = 0;
  std::function<Pair(size_t index)> at;

  Pairs() = default;
  Pairs(std::vector<Pair> list)  // NOLINT: a list is one kind of them
      : count(list.size()), at([list = std::move(list)](size_t index) { return list[index]; }) {}
};

}  // namespace ait::match
