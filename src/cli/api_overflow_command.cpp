#include "cli/command.h"
#include "cli/process_io.h"
#include "launch/python.h"

namespace ait::cli {
namespace {

class ApiOverflowCommand : public CommandOf<launch::PythonOptions> {
 public:
  void add_options(OptionSet& set) override {
    launch::PythonOptions& o = options_;
    set.group("Input");
    set.add_required("--forward", o.value("-forward"), "FILE",
                     "forward_info_{pid}.json that ait_llm.overflow.watch has left");
    set.add_option("--data-path", o.value("--data_path"), "DIR",
                   "where real data lie, if not below the folder of the records");
    set.group("How");
    set.add_option("--device", o.value("--device"), "DEVICE",
                   "cpu, cuda, cuda:N, npu, npu:N or auto (an accelerator if there\n"
                   "is one); auto if not given");
    set.add_option("-d", o.value("-d"), "ID", "number of the device; 0 if not given");
    set.add_flag("-j,--jit-compile", o.flag("--jit_compile"), "compile mode of the NPU runtime");
    set.add_option("--time-limit", o.value("--time_limit"), "SECONDS",
                   "time for one call; 300 if not given");
    set.group("Output");
    set.add_option("-o,--output", o.value("--out_path"), "DIR",
                   "folder for overflow_check_result.csv; the current one if not\ngiven");
  }

  int run() override {
    const GracefulStop stop;
    const auto end = launch::run_python_module("ait_llm.api_check", options_.words("overflow"));
    return end ? end->status() : report_error(end.error());
  }
};

}  // namespace

CommandEntry api_overflow_command() {
  return {"api overflow",
          "Tell whether an overflow is in the values or the fault of the device",
          {"-forward FILE [options]", {"api overflow -forward forward_info_4711.json"}},
          &make_command<ApiOverflowCommand>};
}

}  // namespace ait::cli
