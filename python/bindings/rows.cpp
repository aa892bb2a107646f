#include "rows.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "compare/row_store.h"
#include "compare/row_stream.h"
#include "errors.h"
#include "match/pair_paths.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using compare::MetricCompat;
using compare::Row;
using compare::RowStore;
using compare::RowStream;
using match::AlignedToken;
using match::AutomaticPairs;
using match::Coverage;

// How long Ctrl-C may go unnoticed while a row is waited for.
constexpr auto kSignalDelay = std::chrono::milliseconds(50);

std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

MetricCompat compat_named(const std::optional<std::string>& word) {
  if (!word) return MetricCompat::kOwn;
  if (*word == "msit") return MetricCompat::kMsit;
  if (*word == "ait") return MetricCompat::kAit;
  throw Raised{Error(ErrorCode::kUsage)
               << "metric_compat must be \"msit\" or \"ait\", not " << printable(*word)};
}

// One run over the pairs, for one loop. It ends with the object.
class RowIterator {
 public:
  RowIterator(std::shared_ptr<const match::Pairs> pairs, const compare::Options& options)
      : stream_(std::make_unique<RowStream>(std::move(pairs), options)) {}

  RowIterator(RowIterator&&) = default;

  ~RowIterator() {
    // A forked child has none of the threads, and its copies of the locks may be held for ever.
    if (is_forked()) {
      [[maybe_unused]] const auto* left_alone = stream_.release();
      return;
    }
    const nb::gil_scoped_release unlocked;
    stream_.reset();
  }

  Row next() {
    if (is_forked())
      throw Raised{Error(ErrorCode::kUsage)
                   << "this comparison runs in the process that began it; begin one of your own "
                      "after a fork"};
    Row row;
    // A row that is ready costs no hand-over of the interpreter to other threads.
    auto next = stream_->next(row, {});
    while (next == RowStream::Next::kWait) {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      const nb::gil_scoped_release unlocked;
      next = stream_->next(row, kSignalDelay);
    }
    if (next == RowStream::Next::kEnd) throw nb::stop_iteration();
    return row;
  }

 private:
  bool is_forked() const { return ::getpid() != pid_; }

  pid_t pid_ = ::getpid();
  std::unique_ptr<RowStream> stream_;
};

// What was paired, and how it is to be measured.
class Rows {
 public:
  Rows(match::PairList list, const compare::Options& options)
      : list_(std::make_shared<const match::PairList>(std::move(list))), options_(options) {}

  const match::PairList& list() const { return *list_; }

  RowIterator iterate() const {
    return {std::shared_ptr<const match::Pairs>(list_, &list_->pairs), options_};
  }

 private:
  std::shared_ptr<const match::PairList> list_;
  compare::Options options_;
};

// Nothing where the paths are two files of one tensor each.
std::optional<Rows> pair_runs(const nb::bytes& golden, const nb::bytes& actual,
                              const nb::bytes& mapping_file, const std::string& token_map,
                              const std::optional<std::string>& metric_compat, bool rows,
                              size_t threads) {
  compare::Options options;
  options.compat = compat_named(metric_compat);
  options.rows = rows;
  options.profile = true;
  options.threads = threads;
  match::Inputs inputs;
  inputs.golden = text_of(golden);
  inputs.actual = text_of(actual);
  inputs.mapping_file = text_of(mapping_file);
  inputs.token_map = token_map;

  const nb::gil_scoped_release unlocked;
  if (inputs.actual.empty() && capture::find_layout(inputs.golden, capture::RunKind::kMapping,
                                                    capture::Role::kGolden) == nullptr)
    throw Raised{Error(ErrorCode::kUsage, inputs.golden)
                 << "holds no golden_tensor/metadata.json that would name the files of both sides; "
                    "give a second path"};
  auto list = value_or_raise(match::pair_paths(inputs));
  if (!list.kind) return std::nullopt;
  return Rows(std::move(list), options);
}

const char* word(capture::RunKind kind) {
  switch (kind) {
    case capture::RunKind::kMapping:
      return "mapping";
    case capture::RunKind::kOperations:
      return "dumps";
    case capture::RunKind::kWeights:
      return "checkpoints";
    case capture::RunKind::kFiles:
      return "folders";
  }
  return "";
}

nb::list texts(const std::vector<std::string>& texts) {
  nb::list out;
  for (const std::string& text : texts) out.append(decoded(text));
  return out;
}

void bind_pairing(nb::module_& module) {
  nb::class_<Coverage>(module, "Coverage")
      .def_ro("operations", &Coverage::operations)
      .def_ro("paired", &Coverage::paired)
      .def_ro("copies", &Coverage::copies)
      .def_prop_ro("alone",
                   [](const Coverage& self) {
                     nb::dict out;
                     for (const auto& [why, count] : self.alone) out[decoded(why)] = count;
                     return out;
                   })
      .def("__repr__", [](const Coverage& self) {
        return "Coverage(" + std::to_string(self.paired) + " of " +
               std::to_string(self.operations) + " operations paired)";
      });
  nb::class_<AlignedToken>(module, "AlignedToken")
      .def_prop_ro("token", [](const AlignedToken& self) { return decoded(self.token); })
      .def_prop_ro("golden_round",
                   [](const AlignedToken& self) { return decoded(self.golden_round); })
      .def_prop_ro("actual_round",
                   [](const AlignedToken& self) { return decoded(self.actual_round); })
      .def_ro("is_prefill", &AlignedToken::is_prefill)
      .def_ro("phase_is_known", &AlignedToken::phase_is_known);
  nb::class_<AutomaticPairs>(module, "Pairing")
      .def_ro("golden", &AutomaticPairs::golden)
      .def_ro("actual", &AutomaticPairs::actual)
      .def_ro("golden_layers", &AutomaticPairs::golden_layers)
      .def_ro("actual_layers", &AutomaticPairs::actual_layers)
      .def_ro("certain", &AutomaticPairs::certain)
      .def_ro("likely", &AutomaticPairs::likely)
      .def_ro("method", &AutomaticPairs::method)
      .def_ro("tokens", &AutomaticPairs::tokens)
      .def_prop_ro("notes", [](const AutomaticPairs& self) { return texts(self.notes); });
}

void bind_live_rows(nb::module_& module) {
  nb::class_<RowIterator>(module, "RowIterator")
      .def("__iter__", [](nb::handle self) { return self; })
      .def("__next__", &RowIterator::next);
  nb::class_<Rows>(module, "Rows")
      .def("__len__", [](const Rows& self) { return self.list().pairs.count; })
      .def("__iter__", &Rows::iterate)
      .def_prop_ro("kind", [](const Rows& self) { return word(*self.list().kind); })
      .def_prop_ro("what", [](const Rows& self) { return decoded(self.list().what); })
      .def_prop_ro("problems",
                   [](const Rows& self) {
                     nb::list out;
                     for (const Error& problem : self.list().problems)
                       out.append(exception_of(problem));
                     return out;
                   })
      .def_prop_ro("pairing",
                   [](const Rows& self) {
                     const auto& found = self.list().automatic;
                     return found ? &*found : nullptr;
                   })
      .def("__repr__", [](const Rows& self) {
        return "Rows(" + printable(self.list().what, 4096) + ": " +
               std::to_string(self.list().pairs.count) + " pairs)";
      });
  module.def("pair_runs", &pair_runs, "golden"_a, "actual"_a, "mapping_file"_a, "token_map"_a,
             "metric_compat"_a.none(), "rows"_a, "threads"_a);
}

Row stored_row(const RowStore& store, Py_ssize_t index) {
  const auto size = static_cast<Py_ssize_t>(store.size());
  if (index < -size || index >= size) throw nb::index_error("there is no row of that number");
  return value_or_raise(store.at(static_cast<size_t>(index < 0 ? index + size : index)));
}

nb::list stored_rows(const RowStore& store, const nb::slice& slice) {
  const auto [start, stop, step, length] = slice.compute(store.size());
  nb::list out;
  for (size_t i = 0; i < length; ++i)
    out.append(stored_row(store, start + static_cast<Py_ssize_t>(i) * step));
  return out;
}

void bind_stored_rows(nb::module_& module) {
  nb::class_<RowStore>(module, "RowStore")
      .def("__len__", &RowStore::size)
      .def("__getitem__", &stored_row)
      .def("__getitem__", &stored_rows)
      // Of what has numbers, Python makes an iterator by itself.
      .def("__iter__", [](nb::handle self) { return nb::steal(PySeqIter_New(self.ptr())); })
      .def_prop_ro("is_complete", &RowStore::is_complete)
      .def("__repr__", [](const RowStore& self) {
        return "RowStore(" + std::to_string(self.size()) +
               (self.is_complete() ? " rows)" : " rows, cut off)");
      });
  module.def(
      "open_rows",
      [](const nb::bytes& path) {
        const std::string file = text_of(path);
        const nb::gil_scoped_release unlocked;
        return value_or_raise(RowStore::open(file));
      },
      "path"_a);
}

}  // namespace

void bind_rows(nb::module_& module) {
  bind_pairing(module);
  bind_live_rows(module);
  bind_stored_rows(module);
}

}  // namespace ait::python
