// Reads a Python pickle as data. Nothing in it is ever run: a call is only noted down ("these
// arguments were meant for torch._utils._rebuild_tensor_v2"), and a name that is not on a short
// allow-list ends the reading with kRefused.
//
//   auto document = pickle::parse(bytes, {path, offset_bytes});
//   if (document->kind(document->root()) == pickle::Kind::kDict)
//     for (pickle::Id item : document->items(document->root())) …   // key, value, key, value
//
// A pickle is a program for a stack machine (pickletools.py of CPython documents the instructions).
// All values lie in one flat arena and refer to each other by number, so deep nesting, sharing and
// cycles cost nothing here; whoever walks the values must bound the walk. Strings are looks into
// `bytes`, which must outlive the document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"

namespace ait::formats::pickle {

// Far above real checkpoints (a tensor takes about 15 values), and a bound on memory: some 30 bytes
// each.
inline constexpr size_t kMaxValues = size_t{1} << 22;
// Open marks, that is unfinished tuples, lists and dicts inside each other.
inline constexpr size_t kMaxNesting = 1000;
// Positions inside a pickle are kept in 32 bits.
inline constexpr size_t kMaxPickleBytes = size_t{1} << 31;

enum class Kind : uint8_t {
  kNone,
  kBool,
  kInt,
  kBigInt,  // beyond 64 bits, left unread
  kDouble,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,  // items() alternate key and value, in order of insertion
  kSet,
  kGlobal,      // a name of the allow-list: global()
  kPersistent,  // torch's storages: items() is the one id
  kCall,        // global() is what was to be called, items() the arguments; of numpy's arrays and
                // types the state that was set afterwards follows these
};

enum class GlobalKind : uint8_t {
  kOrderedDict,
  kDefaultDict,
  kSet,
  kHarmless,  // values that hold no tensor: torch.Size, torch.device, …
  kNumpyScalar,
  kStorage,
  kDType,
  kTensorType,         // torch.Tensor, Parameter, Buffer
  kRebuildTensor,      // (storage, offset, size, stride, …), also what torch_npu adds
  kRebuildTensorV2,    // (…, requires_grad, hooks, metadata)
  kRebuildTensorV3,    // (…, requires_grad, hooks, dtype, metadata)
  kRebuildWrapped,     // (tensor, …): parameters
  kRebuildFromType,    // (function, type, arguments, state)
  kNumpyArray,         // (type, shape, code), then its state
  kNumpyBuffer,        // (bytes, dtype, shape, order)
  kNumpyDType,         // (name, …), then its state
  kUnsupportedTensor,  // known, but no plain tensor: sparse, quantised, nested, meta
};

struct Global {
  std::string_view module;
  std::string_view name;
  GlobalKind kind;
  std::optional<DType> dtype;  // of kStorage and kDType, where ait has the type
  std::string text() const;    // "torch._utils._rebuild_tensor_v2"
};

using Id = uint32_t;

// Where the bytes come from, for error messages.
struct Source {
  std::string path;
  // Of the first byte in that file, if it lies there as it is.
  uint64_t offset_bytes = Error::kNoOffset;
};

class Document {
 public:
  Id root() const { return root_; }
  size_t size() const { return nodes_.size(); }    // all ids lie below
  size_t end_bytes() const { return end_bytes_; }  // just behind the last instruction

  Kind kind(Id id) const { return nodes_[id].kind; }
  // Each of these asks for the right kind().
  bool boolean(Id id) const { return nodes_[id].integer != 0; }
  int64_t integer(Id id) const { return nodes_[id].integer; }
  std::string_view text(Id id) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + nodes_[id].range.first,
            nodes_[id].count};
  }
  const Global& global(Id id) const;

  // Of tuples, lists, dicts, sets, persistent ids and calls.
  class Items;
  Items items(Id id) const;
  size_t count(Id id) const { return nodes_[id].count; }
  // Calls `visit(key, value)` for each pair of a dict, until one returns false; whether none did.
  template <typename Visit>
  bool each_pair(Id dict, Visit visit) const;

 private:
  friend class Interpreter;

  struct Range {
    uint32_t first;
    uint32_t last;
  };
  struct Node {
    Kind kind;
    uint8_t global;  // index into the allow-list
    uint32_t count;  // of items, or bytes of text
    union {
      int64_t integer;
      double real;
      Range range;  // text: position; containers: first and last cell
    };
  };
  // Items are chained, so that a list can grow at any time.
  struct Cell {
    Id value;
    uint32_t next;
  };

  std::span<const std::byte> bytes_;
  std::vector<Node> nodes_;
  std::vector<Cell> cells_;
  Id root_ = 0;
  size_t end_bytes_ = 0;
};

class Document::Items {
 public:
  class Iterator {
   public:
    Iterator(const std::vector<Cell>* cells, uint32_t cell, uint32_t left)
        : cells_(cells), cell_(cell), left_(left) {}
    Id operator*() const { return (*cells_)[cell_].value; }
    Iterator& operator++() {
      cell_ = (*cells_)[cell_].next;
      --left_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return left_ != other.left_; }

   private:
    const std::vector<Cell>* cells_;
    uint32_t cell_;
    uint32_t left_;
  };

  Items(const std::vector<Cell>* cells, uint32_t first, uint32_t count)
      : cells_(cells), first_(first), count_(count) {}
  Iterator begin() const { return {cells_, first_, count_}; }
  Iterator end() const { return {cells_, 0, 0}; }

 private:
  const std::vector<Cell>* cells_;
  uint32_t first_;
  uint32_t count_;
};

inline Document::Items Document::items(Id id) const {
  return {&cells_, nodes_[id].range.first, nodes_[id].count};
}

template <typename Visit>
bool Document::each_pair(Id dict, Visit visit) const {
  const Items all = items(dict);
  for (auto item = all.begin(); item != all.end(); ++item) {
    const Id key = *item;
    ++item;
    if (!visit(key, *item)) return false;
  }
  return true;
}

// Runs the pickle at the start of `bytes` up to its STOP. kCorrupt where it is cut off or breaks
// the rules of the machine, kRefused (naming the offender) where it asks for a name or instruction
// that could run code.
Result<Document> parse(std::span<const std::byte> bytes, const Source& source);

}  // namespace ait::formats::pickle
