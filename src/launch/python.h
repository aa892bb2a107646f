// Commands whose work is done by the Python package: what needs torch.
//
//   PythonOptions options;
//   options.value("-forward") = path;
//   auto end = run_python_module("ait_llm.api_check", options.words("check"));
//   if (!end) return fail(end.error());  // kNotFound: no Python that has the package
//   return end->status();
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "launch/child.h"

namespace ait::launch {

// `python -c` and `python -m` take modules from the current folder before all others, and that may be
// a dump of anybody's: what is given to -c begins with this.
inline constexpr const char* kNotFromHere =
    "import sys; sys.path[:] = [p for p in sys.path if p]; ";

// $AIT_PYTHON, else that of the environment which this program is installed in or was built beside,
// else python3. The first of these that is there must have the package, or this program is of a
// bundle, which has it.
Result<std::string> find_python();

// Options that are handed on as they were given, under the names that the module has for them.
class PythonOptions {
 public:
  // To be filled in, now or later. What stays empty is not handed on.
  std::string& value(const char* name) { return values_.emplace_back(name, "").second; }
  bool& flag(const char* name) { return flags_.emplace_back(name, false).second; }

  std::vector<std::string> words(const std::string& first) const;

 private:
  // Deques, because references to what they hold stay good.
  std::deque<std::pair<const char*, std::string>> values_;
  std::deque<std::pair<const char*, bool>> flags_;
};

// `python -m module words…`, with the terminal, and nothing of the current folder.
Result<ChildEnd> run_python_module(const std::string& module,
                                   const std::vector<std::string>& words);

}  // namespace ait::launch
