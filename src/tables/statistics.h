// The columns of a report on statistics alone (`--stats`): how far maximum, minimum, mean and norm
// of the two sides are apart. Names and order are the newer tools'; cmp_fail_reason, which they do
// not have, stands last. A new column is one line in statistics.cpp.
#pragma once

#include "tables/comparison.h"

namespace ait::tables {

ComparisonColumns statistics_columns();

}  // namespace ait::tables
