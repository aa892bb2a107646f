#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/log.h"
#include "capture/labels.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "compare/engine.h"
#include "launch/child.h"
#include "launch/program.h"
#include "match/pair.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"
#include "tables/labels.h"
#include "tables/row_report.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;
using capture::LabelledPair;
using capture::Labels;
using compare::Row;

struct AclcmpOptions {
  std::vector<std::string> command;  // to run and to collect labels of
  std::string labels;                // or a folder of labels that are there already
  bool json = false;
  bool extended = false;
  size_t threads = 0;
};

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// What one task came to.
struct Task {
  std::string id;
  std::string report;
  size_t pairs = 0;
  size_t failed = 0;
  double worst = 0;
  std::string worst_id;
};

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

match::Side side_of(const std::string& path) {
  if (!is_file(path)) return {};
  capture::TensorRecord record;
  record.path = path;
  return record;
}

match::Pair pair_of(const LabelledPair& labelled) {
  match::Pair pair;
  pair.subject.name = labelled.data_id;
  pair.golden = side_of(labelled.pta_path);
  if (labelled.acl_problem.empty()) pair.actual = side_of(labelled.acl_path);
  return pair;
}

// In the old words, and with the path that was expected.
void explain_missing(Row& row, const LabelledPair& labelled) {
  if (!row.golden.is_missing() && !row.actual.is_missing()) return;
  std::vector<std::string> reasons;
  if (row.golden.is_missing()) reasons.emplace_back("pta_data_path is not exist.");
  if (row.actual.is_missing() && !is_file(labelled.acl_path))
    reasons.emplace_back("acl_data_path is not exist.");
  if (!labelled.acl_problem.empty()) reasons.push_back(labelled.acl_problem);
  row.reason = fmt::format("{}", fmt::join(reasons, " "));
  const auto expected = [](const std::string& path) {
    capture::TensorRecord record;
    record.path = path;
    return std::vector{record};
  };
  row.golden.records = expected(labelled.pta_path);
  row.actual.records = expected(labelled.acl_path);
}

Result<Task> compare_task(const Labels& labels, const AclcmpOptions& options,
                          const std::string& folder, const GracefulStop& stop) {
  auto report = tables::RowReport::create(folder, labels.task_id + "_cmp_result.csv",
                                          tables::label_columns(options.extended));
  if (!report) return fail(report.error());
  Task task;
  task.id = labels.task_id;
  std::vector<match::Pair> pairs;
  pairs.reserve(labels.pairs.size());
  for (const LabelledPair& pair : labels.pairs) pairs.push_back(pair_of(pair));
  std::optional<Error> problem;
  compare::Options measuring;
  measuring.threads = options.threads;
  compare::compare_pairs(pairs, measuring, stop.requested(), [&](Row&& row, uint64_t) {
    if (problem) return;
    explain_missing(row, labels.pairs[std::min(task.pairs, labels.pairs.size() - 1)]);
    ++task.pairs;
    const metrics::Comparison* measured = compare::metrics_of(row);
    if (measured == nullptr) ++task.failed;
    if (measured != nullptr &&
        (task.worst_id.empty() || measured->relative_euclidean_distance > task.worst)) {
      task.worst = measured->relative_euclidean_distance;
      task.worst_id = tables::data_id(row.subject);
    }
    if (auto written = report->append(row); !written) problem = written.error();
  });
  if (problem) return fail(*problem);
  auto path = report->finish(stop.requested() ? "_partial" : "");
  if (!path) return fail(path.error());
  task.report = *path;
  return task;
}

Result<std::vector<Task>> compare_labels(const AclcmpOptions& options, const std::string& folder) {
  auto all = capture::read_labels(folder);
  if (!all) return fail(all.error());
  const GracefulStop stop;
  std::vector<Task> tasks;
  for (const Labels& labels : *all) {
    for (const Error& problem : labels.problems) log_warning(problem.text());
    if (stop.requested()) break;
    auto task = compare_task(labels, options, folder, stop);
    if (!task) return fail(task.error());
    tasks.push_back(std::move(*task));
  }
  return tasks;
}

std::string summary(const std::vector<Task>& tasks) {
  report::Table table({{"task"},
                       {"pairs", report::Align::kRight},
                       {"not compared", report::Align::kRight},
                       {"worst relative_euclidean_distance", report::Align::kRight},
                       {"at"}});
  for (const Task& task : tasks)
    table.add({task.id, std::to_string(task.pairs), std::to_string(task.failed),
               task.worst_id.empty() ? "" : report::number_text(task.worst), task.worst_id});
  std::string out = "\n" + table.text(stdout_is_colourful());
  for (const Task& task : tasks) out += "Report: " + report::visible(task.report) + "\n";
  return out + "Next: open " + report::visible(tasks.back().report) + "\n";
}

std::string document(const std::vector<Task>& tasks, std::optional<int> status) {
  report::JsonArray list;
  for (const Task& task : tasks) {
    report::JsonObject each;
    each.set("task_id", task.id)
        .set("pairs", uint64_t{task.pairs})
        .set("not_compared", uint64_t{task.failed})
        .set("worst", task.worst_id.empty() ? report::Cell() : report::Cell(task.worst_id))
        .set("worst_relative_euclidean_distance",
             task.worst_id.empty() ? report::Cell() : report::Cell(task.worst))
        .set("report", task.report);
    list.emplace_back(std::move(each));
  }
  report::JsonObject root;
  root.set("tasks", std::move(list))
      .set("exit_status", status ? report::Cell(int64_t{*status}) : report::Cell());
  return report::Json(std::move(root)).text() + "\n";
}

// The status of what ran is ours, unless nothing ran.
int finish(const AclcmpOptions& options, const std::string& folder, std::optional<int> status) {
  std::error_code ignored;
  std::vector<Task> tasks;
  if (fs::is_directory(folder, ignored)) {
    auto found = compare_labels(options, folder);
    if (!found) return report_error(found.error());
    tasks = std::move(*found);
  }
  if (options.json) return print(document(tasks, status), status.value_or(kDone));
  if (!tasks.empty()) return print(summary(tasks), status.value_or(kDone));
  const char* nothing =
      "no labels were set: call set_label in the script (from msquickcmp.pta_acl_cmp.compare "
      "import set_label, gen_id, set_task_id)";
  if (!status) return report_error(Error(ErrorCode::kNotFound, folder) << nothing);
  log_warning(nothing);
  return *status;
}

int run_aclcmp(const AclcmpOptions& options) {
  if (!options.labels.empty()) {
    std::error_code ignored;
    if (!fs::is_directory(options.labels, ignored))
      return report_error(Error(ErrorCode::kNotFound, options.labels)
                          << "no such folder; check the path given to --labels");
    return finish(options, options.labels, std::nullopt);
  }
  std::error_code problem;
  const fs::path here = fs::current_path(problem);
  if (problem)
    return report_error(Error(ErrorCode::kUnreadable, ".") << "the current folder is gone");
  const std::string pid = std::to_string(::getpid());
  auto environment = launch::Environment::of_this_process();
  environment.set("AIT_CMP_TASK", "1")
      .set("AIT_CMP_TASK_PID", pid)
      .set("AIT_CMP_TASK_DIR", here.native())
      .remove("AIT_CMP_TASK_ID");
  const auto program =
      launch::find_program(options.command[0], environment.get("PATH").value_or(kDefaultPath));
  if (!program) return report_error(program.error());
  const auto end = launch::run_child(program->path, options.command, environment);
  if (!end) return report_error(end.error());
  if (end->status() != 0)
    log_warning(fmt::format("the command ended with status {}", end->status()));
  return finish(options, (here / pid).native(), end->status());
}

class AclcmpCommand : public CommandOf<AclcmpOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.group("Command");
    set.add_option("--exec", exec_, "\"CMD\"",
                   "the command to run, in quotes; its script calls set_label. For\n"
                   "redirection or pipes write a script and start that");
    set.add_option("--labels", options_.labels, "DIR",
                   "in place of a command: compare the labels that are in this\nfolder already");
    set.group("Output");
    add_json(set, options_.json);
    set.add_flag("--extended", options_.extended, "more columns, after cmp_fail_reason");
    add_threads(set, options_.threads);
  }

  Result<void> understand() override {
    if (exec_.empty() == options_.labels.empty())
      return fail(Error(ErrorCode::kUsage) << "give either --exec or --labels");
    if (exec_.empty()) return {};
    auto command = understand_exec(exec_);
    if (!command) return fail(command.error());
    options_.command = std::move(*command);
    return {};
  }

  int run() override { return run_aclcmp(options_); }

 private:
  std::string exec_;
};

}  // namespace

CommandEntry aclcmp_command() {
  return {
      "debug compare aclcmp",
      "Compare what a script labels while it runs: torch with the acceleration library",
      {"--exec \"CMD\" [options]",
       {"debug compare aclcmp --exec \"bash run.sh args\"",
        "debug compare aclcmp --exec \"python3 chat.py\"", "debug compare aclcmp --labels folder"},
       kExecExitStatus},
      &make_command<AclcmpCommand>};
}

}  // namespace ait::cli
