// Statistics of the calls of one recording: finds the tensors in arguments and results, has each measured where it is, and
// notes them in the table of the round. All of it is used with the interpreter's lock held.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fused/device.h"
#include "fused/table.h"
#include "fused/torch_tensor.h"

namespace ait::python::fused {

// The tensors that a table has rows of already. A tensor that is met again, unchanged, is the same row: torch counts how
// often each has been changed in place.
class Known {
 public:
  ~Known() { clear(); }
  Known() = default;
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;

  // The row, or Table::kNone.
  uint32_t find(const Torch& torch, PyObject* tensor) const;
  void add(PyObject* tensor, int64_t version, const TensorFacts& facts, uint32_t row);
  void clear();

 private:
  struct Entry {
    PyObject*
        reference;  // a weak one: nothing is kept alive, and what comes to the same address is no old friend
    int64_t version;
    uintptr_t address;
    uint32_t row;
    std::vector<int64_t> shape;
  };
  std::unordered_map<PyObject*, Entry> entries_;
};

// A round as Python holds it.
struct RoundTable {
  std::shared_ptr<Table> table;
  Known known;
};

class Recording {
 public:
  enum class Parts : uint8_t { kInputs, kOutputs, kBoth };

  // What Python is asked about what native code does not know; see ait_llm/dump/torch_dump/native.py.
  struct Helpers {
    nanobind::object kind;    // kind(value) -> how to look into values of its class
    nanobind::object leaves;  // leaves(value, stem, depth) -> [(stem, value)]
    nanobind::object name;    // name(key) -> its part of a file's name
    nanobind::object plain;   // plain(value, place) -> a tensor that can be measured, or None
    nanobind::object
        elsewhere;  // elsewhere(table, row, tensor) -> (max, min, mean, norm) or None if they come later
    nanobind::object trouble;  // trouble(error, what)
    // copied(tensor, place) -> the same on the CPU, or None; of a recording with sketches, else None itself
    nanobind::object copied;
  };

  Recording(Parts parts, Helpers helpers)
      : parts_(parts), sketches_(!helpers.copied.is_none()), helpers_(std::move(helpers)) {}

  Parts parts() const { return parts_; }
  // Ends the hold on whoever made this one.
  void close() { helpers_ = {}; }
  bool closed() const { return !helpers_.kind.is_valid(); }

  // Of this thread: the round that it is in.
  void set_current(nanobind::object round);
  std::optional<nanobind::object> current() const;

  // Raise what Python raised, but for an Exception, which is told to `trouble`.
  void arguments(RoundTable& round, uint32_t call, PyObject* const* values, size_t count,
                 PyObject* names);
  void arguments(RoundTable& round, uint32_t call, nanobind::tuple args, nanobind::dict kwargs);
  void output(RoundTable& round, uint32_t call, PyObject* value);
  void tensor(RoundTable& round, uint32_t call, const std::string& stem, PyObject* tensor);

 private:
  friend class Walk;

  // How the values of a class are looked into.
  enum class Kind : uint8_t { kNothing, kSequence, kDict, kOddTensor, kPython, kOpaque };
  Kind kind_of(PyObject* value);
  const std::string& name_of(PyObject* key);
  static uint64_t next_id();
  template <typename Work>
  void guarded(RoundTable& round, uint32_t call, Work work);

  const uint64_t id_ = next_id();
  const Parts parts_;
  const bool sketches_;
  Helpers helpers_;
  std::unordered_map<PyTypeObject*, std::pair<nanobind::object, Kind>> kinds_;
};

// What a weak reference refers to, borrowed; null or None if it is gone.
PyObject* referent(PyObject* reference);

// True in code of ours, in this thread: calls of modules that it makes are nobody's business.
extern thread_local bool busy;

class Busy {
 public:
  Busy() : before_(busy) { busy = true; }
  ~Busy() { busy = before_; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  const bool before_;
};

}  // namespace ait::python::fused
