// The rows of a comparison that was made earlier, and what they come to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compare/row_store.h"
#include "locate/locate.h"

namespace ait::cli {

// The store of a report, of its csv, or of the newest report in a folder.
Result<std::string> find_store(const std::string& path);

template <typename Use>
Result<void> each_row(const compare::RowStore& store, const Use& use) {
  for (size_t i = 0; i < store.size(); ++i) {
    auto row = store.at(i);
    if (!row) return fail(row.error());
    use(std::move(*row));
  }
  return {};
}

// Only pairs that were found by the order of the computation are in that order.
Result<bool> are_in_order(const compare::RowStore& store);

// The pair of a row of the store, as far as the row knows it.
Result<match::Pair> pair_in(const compare::RowStore& store, size_t number);

// Errors of a comparison of the same golden run with one that is healthy by definition.
Result<locate::NoiseRun> read_noise(const std::string& path);

// What is found in the rows; `use` gets each of them with its judgement. `noise` may be null.
Result<std::vector<locate::Finding>> locate_in(const compare::RowStore& store, bool in_order,
                                               const locate::NoiseRun* noise,
                                               const std::function<void(const compare::Row&)>& use);

}  // namespace ait::cli
