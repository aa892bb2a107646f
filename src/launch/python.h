// Commands whose work is done by the Python package: what needs torch.
//
//   auto end = run_python_module("ait_llm.api_check", {"check", "-forward", path});
//   if (!end) return fail(end.error());  // kNotFound: no Python that has the package
//   return end->status();
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "launch/child.h"

namespace ait::launch {

// $AIT_PYTHON, else that of the environment which this program is installed in or was built beside,
// else python3. The first of these that is there must have the package.
Result<std::string> find_python();

// `python -m module words…`, with the terminal.
Result<ChildEnd> run_python_module(const std::string& module,
                                   const std::vector<std::string>& words);

}  // namespace ait::launch
