// The result files of an overflow check, one for each process that had an overflow.
//
//   Overflow detected! Operator name: ElewiseOperation_1:AddF32Kernel
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ait::dump {

// "ait_overflow_res_4711.txt"
std::string result_name(uint64_t pid);

// How long the result files in a folder are: a later run whose process has the same pid appends.
using ResultSizes = std::map<std::string, uint64_t>;
ResultSizes result_sizes(const std::string& folder);

struct OverflowFile {
  uint64_t pid = 0;
  std::string name;
  // With the number of reports, in the order in which they first overflowed.
  std::vector<std::pair<std::string, uint64_t>> operators;
};

// What was added to the process's file since `earlier`. No file is no overflow.
Result<OverflowFile> read_results(const std::string& folder, uint64_t pid,
                                  const ResultSizes& earlier);

// "3_1" of "LinearOperation_3_1:MatMulKernel"; "" where the name has no ids.
std::string ids_of(std::string_view operator_name);

}  // namespace ait::dump
