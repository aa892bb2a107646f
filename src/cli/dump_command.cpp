#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/dump_options.h"
#include "cli/process_io.h"
#include "dump/dump.h"
#include "dump/manifest.h"
#include "summary/dump.h"

namespace ait::cli {
namespace {

class DumpCommand : public CommandOf<DumpOptions> {
 public:
  void add_options(OptionSet& set) override {
    dump::Options& o = words_.rest.record;
    add_exec(set, words_.exec);
    set.group("What");
    set.add_option("--probe", words_.probe, "PROBE",
                   "atb: the acceleration library; torch: the modules of a Python\n"
                   "script, which need not be changed; fx: the graphs that such a\n"
                   "script compiles with torch.compile; atb if not given");
    set.add_list("--type", words_.types, "TYPE...",
                 "what to record: model, layer, op, kernel, tensor,\n"
                 "cpu_profiling, onnx; tensor if not given");
    set.add_flag("--only-save-desc", o.only_description,
                 "only types and shapes of tensors, no data");
    set.add_flag("--save-tiling", o.tiling, "also save tiling data of kernels");
    set.group("Which");
    set.add_list("--save-operation-ids", words_.ids, "IDS",
                 "only these operations and what is inside them, as 2,3_1;\n"
                 "all if not given; --type model shows the ids");
    set.add_option("--save-operation-child", words_.children, "BOOL",
                   "with -ids: record what is inside them, too; True if not given");
    set.add_list("--operation-name", words_.operation_names, "NAME",
                 "only operations whose type begins with this, in upper or lower\n"
                 "case; with -ids, those that either option names");
    set.add_list("--execute-range", words_.rounds, "RANGE",
                 "rounds to record, as first and last of each range: 3,5,7,7 is 3,\n"
                 "4, 5 and 7; 0,0 if not given");
    set.add_option("--save-time", words_.time, "N",
                   "0 before the operation, 1 after it, 2 both; 1 if not given");
    set.add_option("--save-tensor-part", words_.part, "N",
                   "0 inputs, 1 outputs, 2 both; 2 if not given");
    set.add_option("--device-id", words_.device, "N", "only this device; all if not given");
    set.add_option("--when", words_.when, "LIST",
                   "with --probe torch: statistics of all rounds, tensors only of\n"
                   "those around one in which something begins to hold: nan, inf,\n"
                   "'norm>X', every=N (a round in N), spike=F (F times the running\n"
                   "median), as in nan,spike=10; all rounds if -er is not given");
    set.add_option("--keep", words_.keep, "N",
                   "with --when: rounds to keep before and after; 2 if not given");
    set.add_flag("--sketch", o.sketch,
                 "with --probe torch: statistics with a sketch of each tensor, from\n"
                 "which `ait llm compare` estimates distances, in place of tensors");
    set.group("How");
    set.add_optional("--seed", words_.seed, kDefaultSeed, "[N]",
                     "ask the libraries of the command for the same results in every\n"
                     "run; N is 2024 if not given");
    set.group("Output");
    set.add_option("-o,--output", o.output, "DIR",
                   "folder in which ait_dump is made; the current one if not\ngiven");
    set.add_flag("--dry-run", o.dry_run,
                 "run the command, write nothing, and say how many tensors and\n"
                 "bytes a real run would write and how long that takes");
    set.add_flag("--json", words_.rest.json,
                 "print the manifest instead of the summary; the command's\n"
                 "output goes to standard error");
  }

  Result<void> understand() override {
    words_.rest.record.log_level = log_level;
    auto understood = understand_dump(words_);
    if (!understood) return fail(understood.error());
    options_ = std::move(*understood);
    return {};
  }

  int run() override {
    const dump::Options& what = options_.record;
    auto plan = dump::plan(what);
    if (!plan) return report_error(plan.error());
    if (options_.json) plan->output = launch::Output::kToStandardError;
    for (const std::string& sentence : idle_options(what)) log_warning(sentence);
    const std::string obstacle = launch::obstacle_text(plan->program);
    if (!dump::is_python(what.probe) && !obstacle.empty()) log_warning(obstacle);
    const GracefulStop stop;  // what the command is stopped with may come twice
    const auto outcome = dump::run(what, std::move(*plan));
    if (!outcome) return report_error(outcome.error());
    print(options_.json ? dump::manifest_text(*outcome) : summary::dump_text(*outcome));
    return outcome->end.child.status();
  }

 private:
  DumpWords words_;
};

}  // namespace

CommandEntry dump_command() {
  return {"llm dump",
          "Record what the acceleration library or torch computes in a command",
          {"--exec \"CMD\" [options]",
           {"llm dump --exec \"bash run.sh\" --dry-run",
            "llm dump --exec \"bash run.sh\" -er 0,1 -o out",
            "llm dump --exec \"bash run.sh\" --type model onnx",
            "llm dump --exec \"bash run.sh\" -ids 2, 3_1 -child False",
            "llm dump --exec \"python3 generate.py\" --probe torch -o golden",
            "llm dump --exec \"python3 train.py\" --probe torch --when nan,spike=10 -o my"},
           kExecExitStatus},
          &make_command<DumpCommand>};
}

}  // namespace ait::cli
