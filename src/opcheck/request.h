// What a check is asked to do: the words that people give to the options of the command, and what
// they mean.
//
//   Words words;
//   words.search.folder = "ait_dump";
//   words.metrics = {"kl"};
//   const auto request = understand(words);
//   if (!request) return fail(request.error());  // kUsage, in a sentence that names the option
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "opcheck/check.h"
#include "opcheck/summary.h"
#include "rerun/runner.h"

namespace ait::opcheck {

struct Words {
  Search search = {};                     // its folder, table and names
  std::vector<std::string> ids = {};      // {"24_1", "2_3_5"}
  std::vector<std::string> metrics = {};  // {"kl", "cos_sim"}
  std::vector<std::string> fail_on = {};  // {"bound"}
  std::string precision = {};             // "force_fp16"
  std::string memory = {};                // GiB
  std::string device = {};
  size_t threads = 0;
  bool rerun = false;
  std::string plugin = {};
  size_t rerun_seconds = 60;
};

struct Request {
  Search search;
  Options options;
  bool rerun = false;
  rerun::Settings library;
  std::vector<FailOn> fail_on;
  // What the command for one of the operations repeats: {"-c", "table.csv"}.
  std::vector<std::string> again;
};

Result<Request> understand(const Words& words);

}  // namespace ait::opcheck
