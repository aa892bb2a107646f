// What is to be recorded of a command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ait::dump {

using Rounds = std::pair<uint64_t, uint64_t>;  // first and last
inline constexpr Rounds kAllRounds = {0, ~uint64_t{0}};

enum class Probe : uint8_t {
  kAtb,    // the acceleration library
  kTorch,  // modules of torch
  kFx,     // graphs that torch.compile compiles
};

// Whether it is a part of the Python package that records.
constexpr bool is_python(Probe probe) { return probe != Probe::kAtb; }

// "atb", "torch", "fx"
std::string_view name_of(Probe probe);

struct Options {
  std::vector<std::string> command;  // at least one word
  Probe probe = Probe::kAtb;
  std::vector<std::string> types = {"tensor"};  // each once, as asked for; `model` brings `layer`
  bool only_description = false;
  std::string ids;  // "2,3_1"; empty: all
  std::vector<Rounds> rounds = {{0, 0}};
  bool children = true;
  int time = 1;                // 0 before, 1 after, 2 both
  std::string operation_name;  // lower case, "self,linear"; empty: all
  bool tiling = false;
  int part = 2;  // 0 inputs, 1 outputs, 2 both
  std::string output = ".";
  std::optional<int> device;
  std::optional<uint32_t> seed;  // for a command that computes the same every time
  std::string log_level = "info";
  bool dry_run = false;
  // Of the torch probe: tensors only of rounds around one in which a condition holds (watch/trigger.h);
  // empty: of all rounds that are recorded.
  std::string when;
  int keep = 2;
  bool sketch = false;  // of the torch probe: statistics with a sketch of each tensor

  bool wants(std::string_view type) const;
};

// "3,5,7,7", or "all"
std::string rounds_text(const std::vector<Rounds>& rounds);

}  // namespace ait::dump
