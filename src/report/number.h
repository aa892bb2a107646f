// Numbers as the reports write them.
//
//   number_text(3);                    // "3.0"
//   number_text(1e-5);                 // "1e-05"
//   ten_decimals_text(0.99999627481);  // "0.9999962748"
//
// The old tools computed in float32 and printed through Python, so a report is read by scripts that
// expect Python's spelling: a trailing ".0", an exponent of at least two digits, exponents only
// below 1e-4 and from 1e16 on, and nan, inf, -inf.
#pragma once

#include <string>

#include "report/cell.h"

namespace ait::report {

// The fewest digits that give the value back once it is rounded to float32. A value that float32
// would turn into infinity or zero keeps the digits of the double instead: an overflow nobody had
// must not be reported.
std::string number_text(double value);

// A measured value as a cell: a whole number where its tensor is of integers, which float32 would
// round; a real where a double cannot tell whole numbers apart either.
Cell number_cell(double value, bool of_integers);

// The fewest digits that give the double itself back.
std::string double_text(double value);

// Rounded to 10 decimals, without trailing zeros: the spelling of cosine_similarity.
std::string ten_decimals_text(double value);

// With all of so many decimals: the spelling of the rates and errors of checks of single operators.
std::string fixed_decimals_text(double value, int decimals);

}  // namespace ait::report
