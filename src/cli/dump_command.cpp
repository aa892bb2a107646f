#include "base/log.h"
#include "cli/commands.h"
#include "cli/dump_summary.h"
#include "cli/process_io.h"
#include "dump/dump.h"
#include "dump/manifest.h"

namespace ait::cli {

int run_dump(const DumpOptions& options) {
  auto plan = dump::plan(options.record);
  if (!plan) return report_error(plan.error());
  for (const std::string& sentence : idle_options(options.record)) log_warning(sentence);
  const std::string obstacle = launch::obstacle_text(plan->program);
  if (options.record.probe != dump::Probe::kTorch && !obstacle.empty()) log_warning(obstacle);
  const GracefulStop stop;  // what the command is stopped with may come twice
  const auto outcome = dump::run(options.record, std::move(*plan));
  if (!outcome) return report_error(outcome.error());
  print(options.json ? dump::manifest_text(*outcome) : summary_text(*outcome));
  return outcome->end.child.status();
}

}  // namespace ait::cli
