#include "opcheck/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/parallel.h"
#include "formats/registry.h"
#include "golden/golden.h"

namespace ait::opcheck {
namespace {

CheckRow row_of(const Case& each) {
  CheckRow row;
  row.id = each.id;
  row.type = each.type;
  row.param = each.param;
  row.folder = each.folder;
  row.rank = each.rank;
  row.round = each.round;
  row.reasons = each.notes;
  return row;
}

std::vector<CheckRow> not_compared(const Case& each, const std::string& why, Verdict verdict) {
  CheckRow row = row_of(each);
  row.verdict = verdict;
  row.reasons.push_back(why);
  return {std::move(row)};
}

// Tensors of one kind. One without elements has no file, and is nothing here, too.
Result<golden::GivenList> load(const TensorPlaces& places) {
  golden::GivenList out;
  for (const auto& place : places) {
    if (!place) {
      out.emplace_back();
      continue;
    }
    auto file = formats::open_tensor_file(place->path);
    if (!file) return fail(file.error());
    if ((*file)->size() != 1)
      return fail(Error(ErrorCode::kCorrupt, place->path) << "holds not exactly one tensor");
    auto tensor = (*file)->load(0);
    if (!tensor) return fail(tensor.error());
    const auto described = (*file)->describe(0);
    out.emplace_back(golden::Given{std::move(*tensor), described && described->fractal});
  }
  return out;
}

size_t quarter_of_memory() {
  return static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(::sysconf(_SC_PAGE_SIZE)) / 4;
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

// The tensor that an output is compared with: its own file, or the input that holds it afterwards.
const TensorPlace* actual_place(const Case& each, const golden::Output& output, size_t index) {
  const auto find = [](const TensorPlaces& places, size_t place) -> const TensorPlace* {
    return place < places.size() && places[place] ? &*places[place] : nullptr;
  };
  if (const TensorPlace* own = find(each.outputs, index)) return own;
  if (!output.written_input) return nullptr;
  return find(each.inputs_after, *output.written_input);
}

// What an output of which only a part is written was before, where that was recorded.
std::optional<Tensor> before(const Case& each, const golden::Operation& operation,
                             const golden::Output& output) {
  if (!output.part) return std::nullopt;
  const size_t index = output.part->input;
  if (index >= each.inputs.size() || !each.inputs[index] || !each.inputs[index]->before ||
      !operation.inputs[index])
    return std::nullopt;
  const Tensor& tensor = operation.inputs[index]->tensor;
  if (tensor.elements() != count_elements(output.shape)) return std::nullopt;
  return tensor;
}

}  // namespace

std::vector<CheckRow> check_case(const Case& each, const Metrics& metrics, size_t memory_bytes,
                                 size_t threads) {
  if (!each.problem.empty()) return not_compared(each, each.problem, Verdict::kFailed);
  if (!golden::knows(each.type))
    return not_compared(each, golden::why_no_golden(each.type), Verdict::kNoGolden);
  auto inputs = load(each.inputs);
  if (!inputs) return not_compared(each, inputs.error().text(), Verdict::kFailed);
  auto outputs = load(each.outputs);
  if (!outputs) return not_compared(each, outputs.error().text(), Verdict::kFailed);

  golden::Operation operation;
  operation.type = each.type;
  operation.param = each.param;
  operation.inputs = std::move(*inputs);
  for (const auto& output : *outputs)
    operation.outputs.push_back(
        output ? golden::Recorded{output->tensor.dtype(), output->tensor.shape()}
               : golden::Recorded());
  for (const TensorPlaces& places : each.ranks) {
    auto loaded = load(places);
    if (!loaded) return not_compared(each, loaded.error().text(), Verdict::kFailed);
    operation.ranks.push_back(std::move(*loaded));
  }
  operation.rank_params.assign(each.rank_params.begin(), each.rank_params.end());
  golden::Limits limits;
  limits.memory_bytes = memory_bytes;
  limits.threads = threads;
  const auto expected = golden::compute(operation, limits);
  if (!expected)
    return not_compared(
        each, expected.error().message(),
        expected.error().code() == ErrorCode::kUnsupported ? Verdict::kNoGolden : Verdict::kFailed);
  if (const std::string why = overwritten(each, *expected); !why.empty())
    return not_compared(each, why, Verdict::kFailed);
  std::vector<CheckRow> rows;
  const size_t recorded = static_cast<size_t>(std::count_if(
      each.outputs.begin(), each.outputs.end(), [](const auto& o) { return bool(o); }));
  for (size_t i = 0; i < expected->outputs.size(); ++i) {
    const golden::Output& output = expected->outputs[i];
    CheckRow row = row_of(each);
    row.output = i;
    const TensorPlace* place = actual_place(each, output, i);
    if (place == nullptr) {
      row.output.reset();
      row.reasons.push_back("output " + std::to_string(i) + " was not recorded");
      rows.push_back(std::move(row));
      continue;
    }
    const auto actual = formats::load_single(place->path);
    if (!actual) {
      row.output.reset();
      row.reasons.push_back(actual.error().text());
    } else if (actual->elements() != count_elements(output.shape)) {
      row.output.reset();
      row.reasons.push_back("shape mismatch: " + shape_text(actual->shape()) + " vs " +
                            shape_text(output.shape));
    } else {
      measure(output, actual->view(), before(each, operation, output), metrics, row);
    }
    if (row.verdict == Verdict::kFailed && row.was_compared()) {
      if (row.standard && *row.relative_rate_percent < row.standard->rate_percent)
        row.reasons.insert(row.reasons.begin(), rate_reason(row));
      row.reasons.insert(row.reasons.end(), expected->notes.begin(), expected->notes.end());
    }
    rows.push_back(std::move(row));
  }
  if (recorded > expected->outputs.size())
    for (CheckRow& row : rows) {
      row.verdict = Verdict::kFailed;
      row.reasons.push_back("Data count not equal, " + std::to_string(recorded) +
                            " != " + std::to_string(expected->outputs.size()) +
                            ". Will compare only partial");
    }
  return rows;
}

size_t check_cases(const std::vector<Case>& cases, const Options& options,
                   const std::atomic<bool>& stop,
                   const std::function<void(std::vector<CheckRow>&& rows)>& emit) {
  const size_t threads = options.threads == 0 ? available_threads() : options.threads;
  const size_t memory = options.memory_bytes != 0 ? options.memory_bytes : quarter_of_memory();
  std::vector<std::vector<CheckRow>> rows(cases.size());
  size_t done = 0;
  with_threads(threads, [&] {
    done = run_pipeline(cases.size(), 2 * threads,
                        {[&](size_t) { return !stop; },
                         [&](size_t i) {
                           rows[i] =
                               check_case(cases[i], options.metrics, memory / (2 * threads), 0);
                         },
                         [&](size_t i) { emit(std::move(rows[i])); }});
  });
  return done;
}

}  // namespace ait::opcheck
