#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/process_io.h"

namespace ait::cli {
namespace {

// `msit` is the same program under another name.
std::string program_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1) == "msit" ? "msit" : "ait";
}

struct Run {
  int operator()(const PrintText& print_text) const {
    if (print_text.asked_for) return print(print_text.text);
    log_error("say what to do; the commands are:\n\n" + print_text.text);
    return kCannot;
  }
  int operator()(const CompareOptions& options) const { return run_compare(options); }
  int operator()(const AclcmpOptions& options) const { return run_aclcmp(options); }
  int operator()(const DumpOptions& options) const { return run_dump(options); }
  int operator()(const ErrcheckOptions& options) const { return run_errcheck(options); }
  int operator()(const ShowOptions& options) const { return run_show(options); }
  int operator()(const DemoOptions& options) const { return run_demo(options); }
  int operator()(const DoctorOptions& options) const { return run_doctor(options); }
};

}  // namespace
}  // namespace ait::cli

int main(int argc, char** argv) {
  using namespace ait::cli;
  install_signal_handlers();
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const auto command = parse_command_line(program_name(argc > 0 ? argv[0] : "ait"), arguments);
    return command ? std::visit(Run{}, *command) : report_error(command.error());
  } catch (const std::exception& error) {  // out of memory, or a fault of ours
    std::fprintf(stderr, "ait: error: %s\n", error.what());
    return kCannot;
  }
}
