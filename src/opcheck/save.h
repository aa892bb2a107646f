// Operations that failed, saved so that each can be looked at and checked elsewhere: a small dump,
// which -i takes, with what was expected beside it.
//
//     {folder}/tensors/{rank}/{round}/{operation}/op_param.json
//         before/intensor0.bin    after/intensor0.bin    after/outtensor0.bin    as recorded
//         rerun/outtensor0.bin                                                   as a library gave it
//         golden/outtensor0.npy   golden/bound0.npy                              in float64
//         golden/starts0.npy      of an output of which only stretches are written: where they begin
#pragma once

#include <string>

#include "golden/golden.h"
#include "opcheck/case.h"
#include "opcheck/tensors.h"

namespace ait::opcheck {

// The folder of the operation. kUnwritable where the disk refuses.
Result<std::string> save_error_data(const Case& each, const golden::Expected& expected,
                                    const Actual& actual, const std::string& folder);

}  // namespace ait::opcheck
