// What came of one recorded call.
#pragma once

#include <string>

namespace ait::api_check {

// The verdicts are "True", "False", "SKIP" where it could not be run, "N/A" where there is nothing
// to judge.
struct ApiResult {
  std::string name;  // "Functional*linear*0"
  std::string forward;
  std::string backward;
  std::string message;
  std::string forward_within;
  std::string backward_within;
};

// What came of one recorded overflow, in the words of its report.
struct OverflowResult {
  std::string name;
  std::string verdict;  // "normal", "abnormal", "not reproduced", "SKIP"
  std::string on_cpu;   // "True", "False"
  std::string on_device;
  std::string raised;  // in the benchmark's precision
  std::string high;
  std::string low;
  std::string message;
};

}  // namespace ait::api_check
