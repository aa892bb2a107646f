#include "capture/ge_fusion.h"

#include <algorithm>
#include <optional>

namespace ait::capture {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string as_file_name(std::string_view name) {
  std::string out(name);
  constexpr std::string_view kReplaced = " ./\\";
  std::replace_if(
      out.begin(), out.end(), [&](char c) { return kReplaced.find(c) != std::string_view::npos; },
      '_');
  return out;
}

GraphNames::GraphNames(const graph::GeGraph& graph) {
  for (uint32_t i = 0; i < graph.operations.size(); ++i)
    places_.emplace(graph.operations[i].name, i);
  for (uint32_t i = 0; i < graph.operations.size(); ++i)
    places_.emplace(as_file_name(graph.operations[i].name), i);
  places_.erase("");
}

Fusion GraphNames::decompose(std::string_view name,
                             const std::unordered_set<std::string>& dumped) const {
  Fusion out;
  while (!name.empty()) {
    std::optional<uint32_t> found;
    for (size_t length = name.size(); length > 0 && !found; --length) {
      const bool cuts_number =
          length < name.size() && is_digit(name[length - 1]) && is_digit(name[length]);
      if (cuts_number) continue;
      const std::string candidate(name.substr(0, length));
      if (const auto place = places_.find(candidate); place != places_.end()) {
        found = place->second;
        name.remove_prefix(length);
      } else if (length < name.size() && dumped.contains(candidate)) {
        return out;
      }
    }
    if (!found) return out;
    out.parts.push_back(*found);
  }
  out.is_whole = !out.parts.empty();
  return out;
}

}  // namespace ait::capture
