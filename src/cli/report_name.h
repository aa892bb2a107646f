// What reports are called.
#pragma once

#include <string>

namespace ait::cli {

// "ait_cmp_report_20250102030405.csv", local time; "ait_stats_cmp_report_….csv" of statistics alone;
// "cmp_report.csv" for a manual mapping.
std::string report_name(bool statistics, bool manual_mapping = false);

}  // namespace ait::cli
