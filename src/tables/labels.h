// The columns of the on-line comparison with labels: torch's tensor (pta) against the acceleration
// library's (acl). Readers depend on names and order. A new column is one line in labels.cpp.
#pragma once

#include "tables/comparison.h"

namespace ait::tables {

ComparisonColumns label_columns(bool extended);

}  // namespace ait::tables
