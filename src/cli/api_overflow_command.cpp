#include "cli/command.h"
#include "cli/process_io.h"
#include "launch/python.h"

namespace ait::cli {
namespace {

// The words that were given, for the Python package that does the work (ait_llm/api_check).
struct ApiOverflowOptions {
  std::string forward;
  std::string output;
  std::string data_path;
  std::string device;
  std::string number;
  std::string time_limit;
  bool jit_compile = false;
};

class ApiOverflowCommand : public CommandOf<ApiOverflowOptions> {
 public:
  void add_options(OptionSet& set) override {
    ApiOverflowOptions& o = options_;
    set.group("Input");
    set.add_required("--forward", o.forward, "FILE",
                     "forward_info_{pid}.json that ait_llm.overflow.watch has left");
    set.add_option("--data-path", o.data_path, "DIR",
                   "where real data lie, if not below the folder of the records");
    set.group("How");
    set.add_option("--device", o.device, "DEVICE",
                   "cpu, cuda, cuda:N, npu, npu:N or auto; auto if not given: an\n"
                   "accelerator where there is one");
    set.add_option("-d", o.number, "ID", "number of the device; 0 if not given");
    set.add_flag("-j,--jit-compile", o.jit_compile, "compile mode of the NPU runtime");
    set.add_option("--time-limit", o.time_limit, "SECONDS", "of one call; 300 if not given");
    set.group("Output");
    set.add_option("-o,--output", o.output, "DIR",
                   "folder for overflow_check_result.csv; the current one if not\ngiven");
  }

  int run() override {
    const ApiOverflowOptions& o = options_;
    std::vector<std::string> words = {"overflow", "-forward", o.forward};
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {name, value});
    };
    add("--out_path", o.output);
    add("--data_path", o.data_path);
    add("--device", o.device);
    add("-d", o.number);
    add("--time_limit", o.time_limit);
    if (o.jit_compile) words.emplace_back("--jit_compile");
    const GracefulStop stop;
    const auto end = launch::run_python_module("ait_llm.api_check", words);
    return end ? end->status() : report_error(end.error());
  }
};

}  // namespace

CommandEntry api_overflow_command() {
  return {"api overflow",
          "Tell whether a recorded overflow is the mathematics' or the device's",
          {"-forward FILE [options]", {"api overflow -forward forward_info_4711.json"}},
          &make_command<ApiOverflowCommand>};
}

}  // namespace ait::cli
