#include "measure.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "metrics/sketch.h"
#include "operand.h"
#include "report/number.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ait::python {
namespace {

using metrics::NonFinite;
using metrics::RelativeError;
using metrics::RowFinding;
using metrics::Side;
using metrics::Statistics;

Error usage(std::string_view words) { return Error(ErrorCode::kUsage) << words; }

RelativeError relative_error(std::string_view word) {
  if (word == "masked") return RelativeError::kMasked;
  if (word == "plain") return RelativeError::kPlain;
  if (word == "damped") return RelativeError::kDamped;
  throw Raised{usage("relative must be \"masked\", \"plain\" or \"damped\"")};
}

NonFinite non_finite(std::string_view word) {
  if (word == "skip") return NonFinite::kSkip;
  if (word == "withhold") return NonFinite::kWithhold;
  throw Raised{usage("non_finite must be \"skip\" or \"withhold\"")};
}

Measured compare(const Operand& golden, const Operand& actual, bool kl, bool rows, size_t threads,
                 std::string_view relative, double epsilon, const std::vector<double>& thresholds,
                 std::string_view policy, bool mask_absolute) {
  metrics::Request request;
  request.relative = relative_error(relative);
  request.relative_epsilon = epsilon;
  request.mask_absolute = mask_absolute;
  request.non_finite = non_finite(policy);
  request.kl = kl;
  request.rows = rows;
  request.threads = threads;
  if (thresholds.size() > metrics::kMaxThresholds)
    throw Raised{usage("at most ")
                 << metrics::kMaxThresholds << " thresholds can be counted at once"};
  std::copy(thresholds.begin(), thresholds.end(), request.thresholds.begin());
  request.threshold_count = thresholds.size();

  const nb::gil_scoped_release unlocked;
  Measured measured{value_or_raise(metrics::compare(golden.view(), actual.view(), request)), {}};
  measured.pass_counts.assign(measured.passes.begin(),
                              measured.passes.begin() + static_cast<ptrdiff_t>(thresholds.size()));
  return measured;
}

Statistics statistics(const Operand& tensor, size_t threads) {
  const nb::gil_scoped_release unlocked;
  return metrics::statistics(tensor.view(), threads);
}

std::string sketch(const Operand& tensor) {
  const nb::gil_scoped_release unlocked;
  return metrics::sketch_text(metrics::sketch(tensor.view()));
}

void bind_statistics(nb::module_& module) {
  nb::class_<Side>(module, "Side")
      .def_ro("elements", &Side::elements)
      .def_ro("nan", &Side::nan)
      .def_ro("positive_inf", &Side::positive_inf)
      .def_ro("negative_inf", &Side::negative_inf)
      .def_ro("minimum", &Side::minimum)
      .def_ro("maximum", &Side::maximum)
      .def_ro("mean", &Side::mean)
      .def_ro("l2_norm", &Side::l2_norm);
  nb::class_<Statistics, Side>(module, "Statistics").def_ro("l1_norm", &Statistics::l1_norm);
  module.def("statistics", &statistics, "tensor"_a, "threads"_a);
  module.def("sketch", &sketch, "tensor"_a);
}

void bind_comparison(nb::module_& module) {
  nb::class_<RowFinding>(module, "RowFinding")
      .def_ro("rows", &RowFinding::rows)
      .def_ro("worst_row", &RowFinding::worst_row)
      .def_ro("worst_row_cosine", &RowFinding::worst_row_cosine)
      .def_ro("kl_mean", &RowFinding::kl_mean)
      .def_ro("kl_max", &RowFinding::kl_max);
  nb::class_<Measured>(module, "Comparison")
      .def_ro("elements", &Measured::elements)
      .def_ro("compared", &Measured::compared)
      .def_ro("identical", &Measured::identical)
      .def_ro("withheld", &Measured::withheld)
      .def_ro("cosine_similarity", &Measured::cosine_similarity)
      .def_ro("max_relative_error", &Measured::max_relative_error)
      .def_ro("mean_relative_error", &Measured::mean_relative_error)
      .def_ro("max_absolute_error", &Measured::max_absolute_error)
      .def_ro("mean_absolute_error", &Measured::mean_absolute_error)
      .def_ro("kl_divergence", &Measured::kl_divergence)
      .def_ro("relative_euclidean_distance", &Measured::relative_euclidean_distance)
      .def_ro("differing", &Measured::differing)
      .def_ro("zero_golden_mismatch", &Measured::zero_golden_mismatch)
      .def_ro("non_finite_agree", &Measured::non_finite_agree)
      .def_ro("worst_index", &Measured::worst_index)
      .def_ro("worst_golden", &Measured::worst_golden)
      .def_ro("worst_actual", &Measured::worst_actual)
      .def_ro("golden_zero", &Measured::golden_zero)
      .def_ro("actual_zero", &Measured::actual_zero)
      .def_ro("passes", &Measured::pass_counts)
      .def_ro("golden", &Measured::golden)
      .def_ro("actual", &Measured::actual)
      .def_ro("row", &Measured::row);
  module.def("compare", &compare, "golden"_a, "actual"_a, "kl"_a, "rows"_a, "threads"_a,
             "relative"_a, "epsilon"_a, "thresholds"_a, "non_finite"_a, "mask_absolute"_a);
}

// The instruction set that the kernels run with; tests go through all that this machine has.
void bind_simd(nb::module_& module) {
  module.def("simd_targets", &metrics::simd_targets);
  module.def("simd_target", &metrics::simd_target);
  module.def(
      "set_simd_target",
      [](const std::optional<std::string>& target) {
        if (!metrics::force_simd_target(target.value_or("")))
          throw Raised{usage("this machine has no such instruction set: ")
                       << printable(target.value_or(""))};
      },
      "target"_a.none());
}

}  // namespace

void bind_measure(nb::module_& module) {
  module.def("number_text", &report::number_text, "value"_a);
  bind_statistics(module);
  bind_comparison(module);
  bind_simd(module);
}

}  // namespace ait::python
