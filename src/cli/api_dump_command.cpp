#include <algorithm>

#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "dump/api_dump.h"
#include "summary/dump.h"

namespace ait::cli {
namespace {

class ApiDumpCommand : public CommandOf<dump::ApiDumpOptions> {
 public:
  void add_options(OptionSet& set) override {
    add_exec(set, exec_);
    set.group("What");
    set.add_list("--iteration", iterations_, "N...",
                 "the iteration to record, counted from 0, or several as 1,3. An\n"
                 "iteration begins when a data loader fetches a batch or, without\n"
                 "one, with a step of the optimizer; 1 if not given");
    set.add_flag("--real-data", options_.real_data,
                 "store the tensors themselves, not only their extremes");
    set.add_choice("--api-list", list_, {"all", "att"}, "LIST",
                   "all: every function that torch lets others override; att: the\n"
                   "977 of the older tool; all if not given");
    set.add_flag("--keep-going", options_.keep_going,
                 "let the command run on after the iteration; if not given, it is\n"
                 "ended there, with status 0");
    set.group("Output");
    set.add_option("-o,--output", options_.output, "DIR",
                   "folder for forward_info_{pid}.json, backward_info_{pid}.json\n"
                   "and stack_info_{pid}.json; the current one if not given");
  }

  Result<void> understand() override {
    auto words = understand_exec(exec_);
    if (!words) return fail(words.error());
    options_.command = std::move(*words);
    options_.old_list = list_ == "att";
    const auto numbers = list_items(iterations_);
    if (numbers.empty()) return {};
    options_.iterations.clear();
    for (const std::string& number : numbers) {
      if (number.size() > kMaxDigits ||
          !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
        return fail(Error(ErrorCode::kUsage)
                    << "--iteration takes numbers from 0, as 1 or 1,3, not " << printable(number));
      options_.iterations += (options_.iterations.empty() ? "" : ",") + number;
    }
    return {};
  }

  int run() override {
    const GracefulStop stop;  // what the command is stopped with may come twice
    const auto dump = dump::record_apis(options_, launch::Output::kInherited);
    if (!dump) return report_error(dump.error());
    print(summary::api_dump_text(*dump));
    return dump->child.status();
  }

 private:
  static constexpr size_t kMaxDigits = 9;

  std::string exec_;
  std::vector<std::string> iterations_;
  std::string list_ = "all";
};

}  // namespace

CommandEntry api_dump_command() {
  return {"api dump",
          "Record the calls of torch's functions in one iteration of a training",
          {"--exec \"CMD\" [options]",
           {"api dump --exec \"python train.py\"",
            "api dump --exec \"torchrun --nproc-per-node 2 train.py\" --iteration 3 -o out"},
           kExecExitStatus},
          &make_command<ApiDumpCommand>};
}

}  // namespace ait::cli
