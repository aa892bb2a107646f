#include "cli/command.h"
#include "cli/process_io.h"
#include "launch/python.h"

namespace ait::cli {
namespace {

class ApiCheckCommand : public CommandOf<launch::PythonOptions> {
 public:
  void add_options(OptionSet& set) override {
    launch::PythonOptions& o = options_;
    set.group("Input");
    set.add_required("--forward", o.value("-forward"), "FILE",
                     "forward_info_{pid}.json of a recording, or the json of one\n"
                     "call from ut_error_data");
    set.add_option("--backward", o.value("-backward"), "FILE",
                   "backward_info_{pid}.json; no gradient is checked without it");
    set.add_option("--data-path", o.value("--data_path"), "DIR",
                   "where real data lie, if not below the folder of the records");
    set.group("How");
    set.add_option("--device", o.value("--device"), "DEVICE",
                   "cpu, cuda, cuda:N, npu, npu:N, auto (an accelerator if there is\n"
                   "one), or several separated by commas, which then share the\n"
                   "calls; auto if not given");
    set.add_option("-d", o.value("-d"), "ID", "number of the device; 0 if not given");
    set.add_choice("--against", o.value("--against"), {"inductor"}, "WHAT",
                   "inductor: check what torch.compile makes of each function");
    set.add_flag("-j,--jit-compile", o.flag("--jit_compile"), "compile mode of the NPU runtime");
    set.add_flag("--raw-bench", o.flag("--raw_bench"),
                 "for the verdict by the rule, do not round the benchmark to the\n"
                 "device's type first");
    set.add_option("--seed", o.value("--seed"), "N",
                   "seed of inputs that are drawn at random;\n1234 if not given");
    set.add_option("--time-limit", o.value("--time_limit"), "SECONDS",
                   "time for one call; 300 if not given");
    set.add_option("--max-memory", o.value("--max_memory"), "GIB",
                   "memory for one call; a third of the machine's if not given");
    set.group("Output");
    set.add_option("-o,--output", o.value("--out_path"), "DIR",
                   "folder for accuracy_checking_result.csv and\n"
                   "accuracy_checking_details.csv; the current one if not given");
    set.add_flag("--save-error-data", o.flag("-save_error_data"),
                 "keep inputs and outputs of calls that fail, in ut_error_data");
    set.add_option("--error-data-path", o.value("--error_data_path"), "DIR",
                   "where ut_error_data is made; as the training script said, or\n"
                   "the current folder");
    set.add_flag("--resume", o.flag("--resume"), "continue the csv files in the output folder");
    set.add_option("--result-csv", o.value("--result_csv_path"), "FILE",
                   "continue this result csv");
    set.add_flag("--timestamp", o.flag("--timestamp"),
                 "add the time to the names of the csv files");
    set.add_choice("--fail-on", o.value("--fail_on"), {"failed", "rounding"}, "WHAT",
                   "end with status 1 if a call fails: failed, by the rule;\n"
                   "rounding, if it is off by more than rounding explains");
  }

  int run() override {
    const GracefulStop stop;
    const auto end = launch::run_python_module("ait_llm.api_check", options_.words("check"));
    return end ? end->status() : report_error(end.error());
  }
};

}  // namespace

CommandEntry api_check_command() {
  return {"api check",
          "Run recorded calls of torch's functions again and compare them",
          {"-forward FILE [options]",
           {"api check -forward forward_info_4711.json -backward backward_info_4711.json",
            "api check -forward forward_info_4711.json --device cuda -save_error_data",
            "api check -forward ut_error_data/Functional.linear.0.json -o trial"},
           "  0  done, whatever was found\n"
           "  1  what --fail-on names was found\n"
           "  2  wrong usage, unreadable input or nothing to do; one line says why\n"},
          &make_command<ApiCheckCommand>};
}

}  // namespace ait::cli
