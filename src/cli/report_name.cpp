#include "cli/report_name.h"

#include <ctime>

namespace ait::cli {
namespace {

std::string local_time(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, form, &local);
  return text;
}

}  // namespace

std::string report_name(bool statistics, bool manual_mapping) {
  if (manual_mapping) return "cmp_report.csv";
  return (statistics ? "ait_stats_cmp_report_" : "ait_cmp_report_") + local_time("%Y%m%d%H%M%S") +
         ".csv";
}

std::string opcheck_name() { return "opcheck_result_" + local_time("%Y%m%d_%H%M%S") + ".csv"; }

}  // namespace ait::cli
