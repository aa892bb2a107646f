#include "dump/options.h"

#include <algorithm>

namespace ait::dump {

bool Options::wants(std::string_view type) const {
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::string_view name_of(Probe probe) {
  constexpr std::string_view kNames[] = {"atb", "torch", "fx"};
  return kNames[static_cast<size_t>(probe)];
}

std::string rounds_text(const std::vector<Rounds>& rounds) {
  if (rounds == std::vector<Rounds>{kAllRounds}) return "all";
  std::string out;
  for (const auto& [first, last] : rounds)
    out += (out.empty() ? "" : ",") + std::to_string(first) + "," + std::to_string(last);
  return out;
}

}  // namespace ait::dump
