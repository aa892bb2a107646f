#include "cli/report_name.h"

#include <ctime>

namespace ait::cli {

std::string report_name(bool statistics, bool manual_mapping) {
  if (manual_mapping) return "cmp_report.csv";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &local);
  return std::string(statistics ? "ait_stats_cmp_report_" : "ait_cmp_report_") + text + ".csv";
}

}  // namespace ait::cli
