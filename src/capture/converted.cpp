#include "capture/converted.h"

namespace ait::capture {

std::optional<std::string_view> stem_of_statistics(std::string_view name) {
  for (const std::string_view end : {kArrayExtremes, kGeExtremes, kStatisticsTable})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return std::nullopt;
}

bool has_better(const std::vector<Entry>& entries, std::string_view name,
                std::string_view extension) {
  const auto stem = stem_of_statistics(name);
  if (!stem) return false;
  const auto has = [&](std::string_view end) {
    return has_entry(entries, std::string(*stem) + std::string(end));
  };
  return has(extension) || (!name.ends_with(kStatisticsTable) && has(kStatisticsTable));
}

}  // namespace ait::capture
