// The command line of ait-llama.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "models/llama.h"

namespace ait_llama {

struct Options {
  std::string text;  // not empty: print this and end (help, list of faults)

  std::string make_model;  // not empty: write a random model there and end

  std::string folder;
  std::vector<std::vector<int64_t>> prompts;
  size_t steps = 16;
  size_t ranks = 1;
  size_t threads = 0;
  bool time = false;
  std::string logits_path;
  atb_speed::LlamaOptions model;
};

// Understands the arguments after the program's name.
ait::Result<Options> parse_options(std::vector<std::string> arguments);

// "1,15,7;2,9" as two prompts.
ait::Result<std::vector<std::vector<int64_t>>> parse_tokens(const std::string& text);

}  // namespace ait_llama
