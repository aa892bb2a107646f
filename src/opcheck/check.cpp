#include "opcheck/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/memory.h"
#include "base/parallel.h"
#include "golden/golden.h"
#include "opcheck/measure.h"
#include "opcheck/save.h"
#include "opcheck/tensors.h"

namespace ait::opcheck {
namespace {

CheckRow row_of(const Case& each) {
  CheckRow row;
  row.id = each.id;
  row.type = each.type;
  row.param = each.param;
  row.folder = each.folder;
  row.again_folder = each.again_folder;
  row.rank = each.rank;
  row.round = each.round;
  return row;
}

std::vector<CheckRow> not_compared(const Case& each, const std::string& why, Verdict verdict) {
  CheckRow row = row_of(each);
  row.verdict = verdict;
  row.reasons.push_back(why);
  return {std::move(row)};
}

// In the old tool's words.
std::string rate_reason(const CheckRow& row) {
  return fmt::format("relative pass rate: {} not met standart: {}.", *row.relative_rate_percent,
                     row.standard->rate_percent);
}

// Inputs that the operation has written to are not what went in, where they were recorded only
// after it. That matters where the golden is made of them.
std::string overwritten(const Case& each, const golden::Expected& expected) {
  for (const size_t index : golden::changed_inputs(each.type, each.param)) {
    const auto& read = expected.read_inputs;
    if (std::find(read.begin(), read.end(), index) != read.end() && index < each.inputs.size() &&
        each.inputs[index] && !each.inputs[index]->before)
      return "input " + std::to_string(index) +
             " was recorded only after the operation had written to it; record it before, too: "
             "-time 2";
  }
  return "";
}

// What an output of which only a part is written was before, where that is known.
std::optional<Tensor> before(const Case& each, const golden::Operation& operation,
                             const Actual& actual, const golden::Output& output) {
  if (!output.part) return std::nullopt;
  const size_t index = output.part->input;
  if (index >= operation.inputs.size() || !operation.inputs[index]) return std::nullopt;
  // Recorded after the operation, it is what the operation left; run again, it is what went in.
  if (!actual.again && !each.inputs[index]->before) return std::nullopt;
  const Tensor& tensor = operation.inputs[index]->tensor;
  if (tensor.elements() != count_elements(output.shape)) return std::nullopt;
  return tensor;
}

// A table may be of another run than the tensors: where their shapes differ, a row says so.
void note_other_shapes(const char* kind, const std::vector<std::string>& stated,
                       const golden::GivenList& found, std::vector<std::string>& notes) {
  for (size_t i = 0; i < std::min(stated.size(), found.size()); ++i) {
    if (stated[i].empty() || !found[i]) continue;
    std::string dims;
    for (const int64_t size : found[i]->tensor.shape())
      dims += (dims.empty() ? "" : ",") + std::to_string(size);
    if (dims != stated[i])
      notes.push_back(fmt::format("the table says {} for {} {}, its file {}", printable(stated[i]),
                                  kind, i, dims));
  }
}

struct Checked {
  std::vector<CheckRow> rows;
  bool needs_memory = false;  // more than it was given; nothing else is known
};

// One case on its way: what is loaded and computed for its rows.
class Check {
 public:
  Check(const Case& each, const Options& options, size_t memory_bytes)
      : case_(each), options_(options), memory_bytes_(memory_bytes) {}

  Checked run() {
    try {
      if (auto ready = prepare(); !ready) return unchecked(ready.error());
      golden::Limits limits;
      limits.memory_bytes = memory_bytes_;
      auto expected = golden::compute(operation_, limits);
      if (expected) return compared(*expected);
      Checked out = unchecked(expected.error());
      out.needs_memory = expected.error().code() == ErrorCode::kUsage;
      return out;
    } catch (const std::exception& thrown) {  // bad_alloc, and what the standard library throws
      return unchecked(Error(ErrorCode::kCorrupt) << "get " << thrown.what() << " when calc "
                                                  << printable(case_.type) << " golden");
    }
  }

 private:
  // Loads the tensors, and runs the operation again where that is asked for.
  Result<void> prepare() {
    if (!case_.problem.empty()) return fail(Error(ErrorCode::kCorrupt) << case_.problem);
    if (!golden::knows(case_.type))
      return fail(Error(ErrorCode::kUnsupported) << golden::why_no_golden(case_.type));
    auto inputs = load(case_.inputs, options_.precision);
    if (!inputs) return fail(inputs.error());
    for (const TensorPlaces& places : case_.ranks) {
      auto loaded = load(places, options_.precision);
      if (!loaded) return fail(loaded.error());
      operation_.ranks.push_back(std::move(*loaded));
    }
    auto actual = load_actual(case_, *inputs, options_.precision, options_.runner);
    if (!actual) return fail(actual.error());
    actual_ = std::move(*actual);
    note_other_shapes("input", case_.input_shapes, *inputs, notes_);
    note_other_shapes("output", case_.output_shapes, actual_.outputs, notes_);
    operation_.type = case_.type;
    operation_.param = case_.param;
    operation_.inputs = std::move(*inputs);
    operation_.rank_params.assign(case_.rank_params.begin(), case_.rank_params.end());
    for (const auto& output : actual_.outputs)
      operation_.outputs.push_back(
          output ? golden::Recorded{output->tensor.dtype(), output->tensor.shape()}
                 : golden::Recorded());
    return {};
  }

  Checked unchecked(const Error& error) const {
    // Messages of goldens and of cases name no file; those of readers do.
    return {not_compared(case_, error.text(),
                         error.code() == ErrorCode::kUnsupported && error.path().empty()
                             ? Verdict::kNoGolden
                             : Verdict::kFailed)};
  }

  Checked compared(const golden::Expected& expected) const {
    if (!actual_.again)
      if (const std::string why = overwritten(case_, expected); !why.empty())
        return unchecked(Error(ErrorCode::kCorrupt) << why);
    Checked out;
    for (size_t i = 0; i < expected.outputs.size(); ++i) out.rows.push_back(row(expected, i));
    const auto given = static_cast<size_t>(std::count_if(
        actual_.outputs.begin(), actual_.outputs.end(), [](const auto& o) { return bool(o); }));
    if (given > expected.outputs.size())
      for (CheckRow& row : out.rows) {
        row.verdict = Verdict::kFailed;
        row.reasons.push_back(
            fmt::format("Data count not equal, {} != {}. Will compare only partial", given,
                        expected.outputs.size()));
      }
    save(expected, out.rows);
    return out;
  }

  CheckRow row(const golden::Expected& expected, size_t index) const {
    const golden::Output& output = expected.outputs[index];
    CheckRow row = row_of(case_);
    row.source = actual_.source;
    row.reasons = notes_;
    const auto tensor = tensor_of(case_, actual_, output, index, options_.precision);
    if (!tensor) {
      row.reasons.push_back(tensor.error().text());
    } else if (!*tensor) {
      row.reasons.push_back("output " + std::to_string(index) + " was not recorded");
    } else if ((*tensor)->elements() != count_elements(output.shape)) {
      row.reasons.push_back("shape mismatch: " + shape_text((*tensor)->shape()) + " vs " +
                            shape_text(output.shape));
    } else {
      row.output = index;
      measure(output, (*tensor)->view(), before(case_, operation_, actual_, output),
              options_.metrics, row);
    }
    if (row.verdict != Verdict::kFailed || !row.was_compared()) return row;
    if (row.standard && *row.relative_rate_percent < row.standard->rate_percent)
      row.reasons.insert(row.reasons.begin(), rate_reason(row));
    row.reasons.insert(row.reasons.end(), expected.notes.begin(), expected.notes.end());
    return row;
  }

  void save(const golden::Expected& expected, std::vector<CheckRow>& rows) const {
    if (options_.error_folder.empty() ||
        std::none_of(rows.begin(), rows.end(), [](const CheckRow& r) { return r.is_failing(); }))
      return;
    const auto folder = save_error_data(case_, expected, actual_, options_.error_folder);
    for (CheckRow& row : rows)
      if (folder)
        row.error_data = *folder;
      else
        row.reasons.push_back("its data could not be saved: " + folder.error().text());
  }

  const Case& case_;
  const Options& options_;
  size_t memory_bytes_;
  golden::Operation operation_;
  Actual actual_;
  std::vector<std::string> notes_;  // what is odd about it and does not keep it from being checked
};

}  // namespace

size_t check_cases(const std::vector<Case>& cases, const Options& options,
                   const std::atomic<bool>& stop,
                   const std::function<void(std::vector<CheckRow>&& rows)>& emit) {
  const size_t threads = options.threads == 0 ? available_threads() : options.threads;
  const size_t memory =
      options.memory_bytes != 0 ? options.memory_bytes : machine_memory_bytes() / 4;
  const size_t in_flight = 2 * threads;
  std::vector<Checked> checked(cases.size());
  size_t emitted = 0;
  const auto emit_next = [&] {
    emit(std::move(std::exchange(checked[emitted], {}).rows));
    ++emitted;
  };
  with_threads(threads, [&] {
    while (emitted < cases.size() && !stop) {
      // One that needs more memory than its share lets all that run come to an end; its rows and
      // those behind it wait.
      const size_t first = emitted;
      std::atomic<bool> crowded = false;
      const size_t done = run_pipeline(
          cases.size() - first, in_flight,
          {[&](size_t) { return !stop && !crowded; },
           [&](size_t i) {
             checked[first + i] = Check(cases[first + i], options, memory / in_flight).run();
             if (checked[first + i].needs_memory) crowded = true;
           },
           [&](size_t i) {
             if (emitted == first + i && !checked[emitted].needs_memory) emit_next();
           }});
      while (emitted < first + done && !stop) {
        if (checked[emitted].needs_memory)
          checked[emitted] = Check(cases[emitted], options, memory).run();
        emit_next();
      }
    }
  });
  return emitted;
}

}  // namespace ait::opcheck
