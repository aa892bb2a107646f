// The tensors of one operation: what went into it, and what came out of it when it was recorded, or
// when a library ran it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "golden/golden.h"
#include "opcheck/case.h"
#include "opcheck/row.h"
#include "rerun/runner.h"

namespace ait::opcheck {

// Nothing where there is no file: a tensor without elements has none. Floating tensors are brought
// to the type that `precision` names.
Result<golden::GivenList> load(const TensorPlaces& places, Precision precision);

// Of operations that wait for what the other ranks send, so that no rank can run one alone.
bool is_done_together(std::string_view type);

struct Actual {
  golden::GivenList outputs;
  std::optional<rerun::Outcome> again;  // where a library ran the operation
  std::string source;                   // what a row says of that
};

// What was recorded, or what `runner` gives for these inputs where there is one. An operation that
// several ranks do together, or that the library does not have, is taken as it was recorded.
Result<Actual> load_actual(const Case& each, const golden::GivenList& inputs, Precision precision,
                           rerun::Runner* runner);

// The tensor that an output is compared with: its own, or the input that holds it afterwards.
// Nothing where none was recorded.
Result<std::optional<Tensor>> tensor_of(const Case& each, const Actual& actual,
                                        const golden::Output& output, size_t index,
                                        Precision precision);

}  // namespace ait::opcheck
