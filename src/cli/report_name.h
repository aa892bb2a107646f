// What reports are called.
#pragma once

#include <string>

namespace ait::cli {

// "ait_cmp_report_20250102030405.csv", local time; "ait_stats_cmp_report_….csv" of statistics alone;
// "cmp_report.csv" for a manual mapping.
std::string report_name(bool statistics, bool manual_mapping = false);

// "opcheck_result_20250102_030405.csv", local time.
std::string opcheck_name();

}  // namespace ait::cli
