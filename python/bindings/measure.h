// metrics/compare.h for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "metrics/compare.h"

namespace ait::python {

// Comparison keeps room for kMaxThresholds counts; Python sees as many as were asked for.
struct Measured : metrics::Comparison {
  std::vector<size_t> pass_counts;
};

void bind_measure(nanobind::module_& module);

}  // namespace ait::python
