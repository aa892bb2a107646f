#include "opcheck/ids.h"

#include <charconv>

namespace ait::opcheck {

std::optional<std::vector<uint64_t>> parse_ids(std::string_view text) {
  std::vector<uint64_t> ids;
  while (true) {
    const std::string_view part = text.substr(0, text.find('_'));
    uint64_t id = 0;
    const auto [end, bad] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (bad != std::errc() || end != part.data() + part.size()) return std::nullopt;
    ids.push_back(id);
    if (part.size() == text.size()) return ids;
    text.remove_prefix(part.size() + 1);
  }
}

std::string ids_text(const std::vector<uint64_t>& ids) {
  std::string out;
  for (const uint64_t id : ids) out += (out.empty() ? "" : "_") + std::to_string(id);
  return out;
}

}  // namespace ait::opcheck
