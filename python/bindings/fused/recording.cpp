#include "fused/recording.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "metrics/compare.h"
#include "metrics/sketch.h"

namespace nb = nanobind;

namespace ait::python::fused {

thread_local bool busy = false;

namespace {

// Of lists in lists: nobody's results are nested like this, but some objects contain themselves.
constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxKinds = 1024;
constexpr char kCaptured[] = "called while a CUDA graph was captured";
// A tensor of so many bytes is measured without the interpreter's lock.
constexpr size_t kLargeBytes = size_t{1} << 20;

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

PyObject* referent(PyObject* reference) {
#if PY_VERSION_HEX >= 0x030D0000 && !defined(Py_LIMITED_API)
  PyObject* object = nullptr;
  if (PyWeakref_GetRef(reference, &object) <= 0) return nullptr;
  Py_DECREF(object);  // the caller has a reference
  return object;
#else
  return PyWeakref_GetObject(reference);
#endif
}

namespace {

// As __name__ says it.
std::string short_name(PyTypeObject* type) {
  return nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(type)).attr("__name__"));
}

std::string sketch_text_of(const TensorView& view) {
  return metrics::sketch_text(metrics::sketch(view));
}

Result numbers_of(const metrics::Statistics& found) {
  return {found.maximum,  found.minimum,
          found.mean,     found.l2_norm,
          found.nan,      found.positive_inf + found.negative_inf,
          found.elements, 1};
}

}  // namespace

uint32_t Known::find(const Torch& torch, PyObject* tensor) const {
  const auto found = entries_.find(tensor);
  if (found == entries_.end()) return Table::kNone;
  const Entry& entry = found->second;
  TensorFacts now;
  if (referent(entry.reference) != tensor || torch.version(tensor) != entry.version ||
      !now.read_place(torch, tensor) || now.address() != entry.address)
    return Table::kNone;
  const auto shape = now.shape();
  const bool same = std::equal(shape.begin(), shape.end(), entry.shape.begin(), entry.shape.end());
  return same ? entry.row : Table::kNone;
}

void Known::add(PyObject* tensor, int64_t version, const TensorFacts& facts, uint32_t row) {
  PyObject* reference = PyWeakref_NewRef(tensor, nullptr);
  if (reference == nullptr) return PyErr_Clear();
  const auto shape = facts.shape();
  Entry& entry = entries_[tensor];
  PyObject* old = std::exchange(entry.reference, reference);
  entry.version = version;
  entry.address = facts.address();
  entry.row = row;
  entry.shape.assign(shape.begin(), shape.end());
  Py_XDECREF(old);
}

void Known::clear() {
  auto entries = std::exchange(entries_, {});
  for (auto& [tensor, entry] : entries) Py_DECREF(entry.reference);
}

// One look at arguments or at a result.
class Walk {
 public:
  Walk(Recording& recording, RoundTable& round, uint32_t call)
      : recording_(recording),
        round_(round),
        table_(*round.table),
        torch_(*Torch::get()),
        call_(call) {}

  void visit(PyObject* value, size_t depth);
  void leaf(PyObject* tensor);
  // Launches what has been gathered.
  void end();

  std::string stem;

 private:
  void odd_leaf(PyObject* value);
  bool measure(PyObject* tensor, const std::string* name);
  bool measure_on_device(const TensorFacts& facts, const std::string* name);
  void measure_elsewhere(const TensorFacts& facts, PyObject* tensor, const std::string* name);
  void sketch(const TensorFacts& facts, PyObject* tensor, uint32_t row);
  const std::string* unique_name();
  std::string place() const {
    return std::to_string(table_.number()) + "/" + table_.place_of(call_) + "/" + stem;
  }
  void look_with_python(PyObject* value, size_t depth);

  Recording& recording_;
  RoundTable& round_;
  Table& table_;
  const Torch& torch_;
  const uint32_t call_;
  std::vector<const std::string*> names_;  // so far
  std::optional<Launch> launch_;
  std::optional<bool> counted_;  // whether tensors have version counters
};

void Walk::visit(PyObject* value, size_t depth) {
  if (value == Py_None) return;
  if (torch_.is_plain(value)) return leaf(value);
  const auto kind = recording_.kind_of(value);
  if (kind == Recording::Kind::kNothing) return;
  if (kind == Recording::Kind::kOddTensor) return odd_leaf(value);
  if (depth == kMaxDepth) return odd_leaf(value);
  const size_t length = stem.size();
  switch (kind) {
    case Recording::Kind::kSequence: {
      // The script's own code may run in between, and change a list.
      for (Py_ssize_t i = 0; i < PySequence_Size(value); ++i) {
        const nb::object each = nb::steal(PySequence_GetItem(value, i));
        if (!each.is_valid()) throw nb::python_error();
        stem += '_';
        stem += std::to_string(i);
        visit(each.ptr(), depth + 1);
        stem.resize(length);
      }
      return;
    }
    case Recording::Kind::kDict: {
      const nb::object items = nb::steal(PyDict_Items(value));
      if (!items.is_valid()) throw nb::python_error();
      for (Py_ssize_t i = 0; i < PyList_Size(items.ptr()); ++i) {
        PyObject* item = PyList_GetItem(items.ptr(), i);
        stem += '_';
        stem += recording_.name_of(PyTuple_GetItem(item, 0));
        visit(PyTuple_GetItem(item, 1), depth + 1);
        stem.resize(length);
      }
      return;
    }
    case Recording::Kind::kPython:
      return look_with_python(value, depth);
    default:
      table_.note_unstored("a " + short_name(Py_TYPE(value)) + " is not looked into",
                           [&] { return place(); });
  }
}

void Walk::look_with_python(PyObject* value, size_t depth) {
  end();  // other threads may run meanwhile
  const nb::object leaves =
      recording_.helpers_.leaves(nb::handle(value), nb::str(stem.c_str(), stem.size()), depth);
  const std::string before = stem;
  for (const nb::handle pair : leaves) {
    stem = nb::cast<std::string>(pair[0]);
    const nb::object each = nb::borrow(nb::object(pair[1]));
    if (torch_.is_plain(each.ptr()))
      leaf(each.ptr());
    else
      odd_leaf(each.ptr());
  }
  stem = before;
}

// A key "0_1" and a nested list may want the same name.
const std::string* Walk::unique_name() {
  const std::string* name = interned(stem);
  const auto again = std::count(names_.begin(), names_.end(), name);
  names_.push_back(name);
  return again == 0 ? name : interned(stem + "#" + std::to_string(again));
}

void Walk::leaf(PyObject* tensor) {
  const std::string* name = unique_name();
  if (!measure(tensor, name)) {
    names_.pop_back();
    odd_leaf(tensor);
  }
}

// What native code cannot look at: Python makes a plain tensor of it, or says why not.
void Walk::odd_leaf(PyObject* value) {
  const std::string* name = unique_name();
  end();
  const nb::object plain = recording_.helpers_.plain(nb::handle(value), place());
  if (plain.is_none()) return;
  if (!torch_.is_plain(plain.ptr()) || !measure(plain.ptr(), name))
    table_.note_unstored("there is no way to measure it", [&] { return place(); });
  end();  // before the tensor goes
}

bool Walk::measure(PyObject* tensor, const std::string* name) {
  if (!counted_) counted_ = !torch_.in_inference_mode();
  if (*counted_) {
    if (const uint32_t row = round_.known.find(torch_, tensor); row != Table::kNone) {
      table_.add_row_again(call_, name, row);
      return true;
    }
  }
  TensorFacts facts;
  if (!facts.read(torch_, tensor)) return false;
  if (facts.elements() == 0) {
    table_.add_row(call_, name, facts.dtype(), facts.shape(), Way::kNobody, nullptr);
    return true;
  }
  const int64_t version = *counted_ ? torch_.version(tensor) : -1;
  const uint32_t rows_before = table_.last_row();
  if (facts.place() == TensorFacts::Place::kCpu) {
    Result* result = table_.add_row(call_, name, facts.dtype(), facts.shape(), Way::kCpu, nullptr);
    const TensorView view = facts.view();
    if (view.bytes() >= kLargeBytes) {
      const nb::gil_scoped_release unlocked;
      *result = numbers_of(metrics::statistics(view));
    } else {
      *result = numbers_of(metrics::statistics(view));
    }
  } else if (facts.place() != TensorFacts::Place::kCuda || !measure_on_device(facts, name)) {
    measure_elsewhere(facts, tensor, name);
  }
  if (table_.last_row() == rows_before) return true;
  // Ours, whatever other threads have added while the lock was not held.
  const uint32_t row = rows_before + 1;
  if (recording_.sketches_) sketch(facts, tensor, row);
  if (version >= 0) round_.known.add(tensor, version, facts, row);
  return true;
}

bool Walk::measure_on_device(const TensorFacts& facts, const std::string* name) {
  Device* device = Device::at(facts.device());
  if (device == nullptr) return false;
  const auto item = item_of(facts.view());
  if (!item) return false;
  if (launch_ && &launch_->device() != device) end();
  if (!launch_) {
    const auto stream = torch_.current_stream(facts.device());
    if (!stream) return false;
    const uint64_t capture = capture_on(*stream);
    if ((capture != 0) != table_.captured()) {
      table_.note_unstored(kCaptured, [&] { return place(); });
      return true;
    }
    launch_.emplace(*device, *stream, capture);
  }
  Result* result = table_.add_row(call_, name, facts.dtype(), facts.shape(), Way::kKernel, device);
  if (result == nullptr) return true;  // no memory: an empty row
  if (const Status status = launch_->add(*item, result); status != 0) table_.note_failure(status);
  return true;
}

void Walk::measure_elsewhere(const TensorFacts& facts, PyObject* tensor, const std::string* name) {
  end();
  if (table_.captured()) return table_.note_unstored(kCaptured, [&] { return place(); });
  table_.add_row(call_, name, facts.dtype(), facts.shape(), Way::kTorch, nullptr);
  const uint32_t row = table_.last_row();
  const nb::object found = recording_.helpers_.elsewhere(table_.number(), row, nb::handle(tensor));
  if (found.is_none()) return;
  const auto [high, low, mean, norm] = nb::cast<std::tuple<double, double, double, double>>(found);
  table_.set(row, {high, low, mean, norm, 0, 0, facts.elements(), kDoneWithoutCounts});
}

// Of the tensor of that row. One on a device is copied first: there is no other way yet.
void Walk::sketch(const TensorFacts& facts, PyObject* tensor, uint32_t row) {
  if (facts.place() == TensorFacts::Place::kCpu) {
    const TensorView view = facts.view();
    if (view.bytes() < kLargeBytes) return table_.add_sketch(row, sketch_text_of(view));
    std::string text;
    {
      const nb::gil_scoped_release unlocked;
      text = sketch_text_of(view);
    }
    return table_.add_sketch(row, std::move(text));
  }
  if (table_.captured()) return;
  end();
  const nb::object copy = recording_.helpers_.copied(nb::handle(tensor), place());
  TensorFacts there;
  if (copy.is_none() || !torch_.is_plain(copy.ptr()) || !there.read(torch_, copy.ptr()) ||
      there.place() != TensorFacts::Place::kCpu)
    return;
  table_.add_sketch(row, sketch_text_of(there.view()));
}

void Walk::end() {
  if (!launch_) return;
  const Status status = launch_->now();
  table_.note_launch(launch_->device(), launch_->stream());
  launch_.reset();
  if (status != 0) table_.note_failure(status);
}

// The rounds that threads are in, by recording.
namespace {
thread_local std::vector<std::pair<uint64_t, PyObject*>> current_rounds;
}

uint64_t Recording::next_id() {
  static uint64_t latest = 0;
  return ++latest;
}

void Recording::set_current(nb::object round) {
  auto& all = current_rounds;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == id_; });
  PyObject* old = nullptr;
  if (found != all.end()) {
    old = found->second;
    all.erase(found);
  }
  if (!round.is_none()) all.emplace_back(id_, round.release().ptr());
  Py_XDECREF(old);
}

std::optional<nb::object> Recording::current() const {
  for (const auto& [recording, round] : current_rounds)
    if (recording == id_) return nb::borrow(round);
  return std::nullopt;
}

Recording::Kind Recording::kind_of(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (type == &PyTuple_Type || type == &PyList_Type) return Kind::kSequence;
  if (type == &PyDict_Type) return Kind::kDict;
  if (type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type ||
      type == &PyUnicode_Type)
    return Kind::kNothing;
  if (const auto found = kinds_.find(type); found != kinds_.end()) return found->second.second;
  if (Torch::get()->is_tensor(value)) return Kind::kOddTensor;
  const std::string word = nb::cast<std::string>(helpers_.kind(nb::handle(value)));
  Kind kind = Kind::kOpaque;
  if (word == "nothing") kind = Kind::kNothing;
  if (word == "inside") kind = Kind::kPython;
  // A class that goes must not leave its place to another one; there may be too many of them.
  if (kinds_.size() < kMaxKinds)
    kinds_.emplace(type, std::pair(nb::borrow(reinterpret_cast<PyObject*>(type)), kind));
  return kind;
}

const std::string& Recording::name_of(PyObject* key) {
  if (PyUnicode_CheckExact(key)) {
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(key, &size); text != nullptr) {
      const std::string_view view(text, static_cast<size_t>(size));
      if (is_plain_name(view)) return *interned(view);
    } else {
      PyErr_Clear();
    }
  }
  return *interned(nb::cast<std::string>(helpers_.name(nb::handle(key))));
}

template <typename Work>
void Recording::guarded(RoundTable& round, uint32_t call, Work work) {
  const Busy ours;
  try {
    Walk walk(*this, round, call);
    work(walk);
    walk.end();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    helpers_.trouble(error.value(), round.table->place_of(call));
  }
}

void Recording::arguments(RoundTable& round, uint32_t call, PyObject* const* values, size_t count,
                          PyObject* names) {
  if (parts_ == Parts::kOutputs) return;
  guarded(round, call, [&](Walk& walk) {
    for (size_t i = 0; i < count; ++i) {
      if (values[i] == Py_None) continue;
      walk.stem = "input_" + std::to_string(i);
      walk.visit(values[i], 1);
    }
    const size_t named = names == nullptr ? 0 : static_cast<size_t>(PyTuple_Size(names));
    for (size_t i = 0; i < named; ++i) {
      if (values[count + i] == Py_None) continue;
      walk.stem = "input_" + name_of(PyTuple_GetItem(names, static_cast<Py_ssize_t>(i)));
      walk.visit(values[count + i], 1);
    }
  });
}

void Recording::arguments(RoundTable& round, uint32_t call, nb::tuple args, nb::dict kwargs) {
  if (parts_ == Parts::kOutputs) return;
  guarded(round, call, [&](Walk& walk) {
    for (size_t i = 0; i < args.size(); ++i) {
      walk.stem = "input_" + std::to_string(i);
      walk.visit(nb::object(args[i]).ptr(), 1);
    }
    for (const auto& [key, value] : kwargs) {
      walk.stem = "input_" + name_of(key.ptr());
      walk.visit(value.ptr(), 1);
    }
  });
}

void Recording::output(RoundTable& round, uint32_t call, PyObject* value) {
  if (parts_ == Parts::kInputs) return;
  guarded(round, call, [&](Walk& walk) {
    walk.stem = "output";
    walk.visit(value, 0);
  });
}

void Recording::tensor(RoundTable& round, uint32_t call, const std::string& stem,
                       PyObject* tensor) {
  guarded(round, call, [&](Walk& walk) {
    walk.stem = stem;
    walk.leaf(tensor);
  });
}

}  // namespace ait::python::fused
