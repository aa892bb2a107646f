#include <fmt/format.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/dump_options.h"
#include "cli/process_io.h"
#include "dump/overflow_check.h"
#include "dump/texts.h"
#include "report/json.h"
#include "report/table.h"
#include "report/utf8.h"

namespace ait::cli {
namespace {

using dump::count_text;
using dump::OverflowCheck;
using dump::OverflowFile;
using report::Json;
using report::JsonArray;
using report::JsonObject;

std::string path_of(const OverflowCheck& check, const OverflowFile& file) {
  return check.output + "/" + file.name;
}

std::string summary(const OverflowCheck& check) {
  std::string out = "\n";
  const size_t processes = check.end.run.processes.size();
  if (!check.files.empty()) {
    report::Table table({{"operator"}, {"overflows", report::Align::kRight}, {"process"}});
    for (const OverflowFile& file : check.files)
      for (const auto& [name, count] : file.operators)
        table.add({name, std::to_string(count), std::to_string(file.pid)});
    out += table.text(stdout_is_colourful());
    for (const OverflowFile& file : check.files)
      out += "Report: " + report::visible(path_of(check, file)) + "\n";
  } else if (processes > 0 && check.end.run.totals().overflows == 0) {
    out += fmt::format("No overflow was reported by {}.\n", count_text(processes, "process"));
  }
  for (const std::string& problem : check.problems)
    out += "Not certain: " + problem + (problem.ends_with('?') ? "\n" : ".\n");
  out += fmt::format("The command {}.\n", dump::end_text(check.end.child));
  if (processes == 0) return out + "Next: see what this machine has with: ait doctor\n";
  if (check.files.empty())
    return out + "Next: record tensors with: ait llm dump --exec \"…\" --dry-run\n";
  const std::string ids = dump::ids_of(check.files.front().operators.front().first);
  return out + fmt::format(
                   "Next: record what the first of them computed: ait llm dump --exec \"…\" "
                   "{}-time 2\n",
                   ids.empty() ? "" : "-ids " + ids + " ");
}

std::string document(const OverflowCheck& check, const dump::OverflowOptions& options) {
  JsonArray files;
  for (const OverflowFile& file : check.files) {
    JsonArray operators;
    for (const auto& [name, count] : file.operators) {
      JsonObject object;
      operators.emplace_back(object.set("name", name).set("overflows", count));
    }
    JsonObject object;
    files.emplace_back(object.set("path", path_of(check, file))
                           .set("pid", file.pid)
                           .set("operators", std::move(operators)));
  }
  JsonArray problems;
  for (const std::string& problem : check.problems) problems.emplace_back(problem);
  JsonArray command;
  for (const std::string& word : options.command) command.emplace_back(word);
  JsonObject root;
  root.set("tool", std::string("ait llm errcheck"))
      .set("version", std::string(AIT_VERSION))
      .set("command", std::move(command))
      .set("exit", options.stop)
      .set("start", dump::iso_text(check.end.start))
      .set("end", dump::iso_text(check.end.end))
      .set("exit_status", int64_t{check.end.child.status()})
      .set("processes", check.end.run.processes.size())
      .set("overflows", check.end.run.totals().overflows)
      .set("results", std::move(files))
      .set("problems", std::move(problems));
  return Json(std::move(root)).text() + "\n";
}

class ErrcheckCommand : public CommandOf<ErrcheckOptions> {
 public:
  void add_options(OptionSet& set) override {
    add_exec(set, exec_);
    set.group("What");
    set.add_list("--type", types_, "TYPE", "what to look for: overflow");
    set.add_flag("--exit", options_.check.stop,
                 "make the operation that overflows fail, which ends most programs");
    set.group("Output");
    set.add_option("-o,--output", options_.check.output, "DIR",
                   "folder for the results, one file for each process that had\n"
                   "an overflow; the current one if not given");
    add_json(set, options_.json);
  }

  Result<void> understand() override {
    for (const std::string& type : types_)
      if (type != "overflow")
        return fail(Error(ErrorCode::kUsage) << "--type does not know '" << printable(type)
                                             << "', the only choice is overflow");
    auto command = understand_exec(exec_);
    if (!command) return fail(command.error());
    options_.check.command = std::move(*command);
    options_.check.log_level = log_level;
    return {};
  }

  int run() override {
    auto plan = dump::plan_overflow_check(options_.check);
    if (!plan) return report_error(plan.error());
    if (options_.json) plan->output = launch::Output::kToStandardError;
    if (const std::string obstacle = launch::obstacle_text(plan->program); !obstacle.empty())
      log_warning(obstacle);
    const GracefulStop stop;  // what the command is stopped with may come twice
    const auto check = dump::check_overflow(options_.check, std::move(*plan));
    if (!check) return report_error(check.error());
    print(options_.json ? document(*check, options_.check) : summary(*check));
    return check->end.child.status();
  }

 private:
  std::string exec_;
  std::vector<std::string> types_;
};

}  // namespace

CommandEntry errcheck_command() {
  return {"llm errcheck",
          "Find operations that overflow while a command runs",
          {"--exec \"CMD\" [options]",
           {"llm errcheck --exec \"bash run.sh\" -o out",
            "llm errcheck --exec \"bash run.sh\" --type overflow --exit"},
           kExecExitStatus},
          &make_command<ErrcheckCommand>};
}

}  // namespace ait::cli
