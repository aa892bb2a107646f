// The names of files that `ait llm convert --to-stats` leaves in place of dumps of GE and FX.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/listing.h"

namespace ait::capture {

inline constexpr std::string_view kArrayExtremes = "_min_max.npy";  // of FX: [minimum, maximum]
inline constexpr std::string_view kGeExtremes = "_min_max.npz";     // formats/ge_statistics.h
inline constexpr std::string_view kStatisticsTable = "_stat.csv";   // formats/statistics_csv.h

// The name without that end: "Add.Add_2.44.6.17" of "Add.Add_2.44.6.17_min_max.npz". Nothing for
// files that are not such statistics.
std::optional<std::string_view> stem_of_statistics(std::string_view name);

// Whether a folder has something better than this file of statistics: the data, which are called
// by the stem and `extension`, or more statistics.
bool has_better(const std::vector<Entry>& entries, std::string_view name,
                std::string_view extension);

}  // namespace ait::capture
