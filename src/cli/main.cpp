#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/process_io.h"
#include "cli/registry.h"

namespace ait::cli {
namespace {

// `msit` is the same program under another name.
std::string program_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1) == "msit" ? "msit" : "ait";
}

int run(const Asked& asked) {
  if (const auto* command = std::get_if<std::unique_ptr<Command>>(&asked)) return (*command)->run();
  const auto& print_text = std::get<PrintText>(asked);
  if (print_text.asked_for) return print(print_text.text);
  log_error("say what to do; the commands are:\n\n" + print_text.text);
  return kCannot;
}

}  // namespace
}  // namespace ait::cli

int main(int argc, char** argv) {
  using namespace ait::cli;
  install_signal_handlers();
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const std::string program = program_name(argc > 0 ? argv[0] : "ait");
    const auto asked = parse_command_line(program, arguments, all_commands());
    return asked ? run(*asked) : report_error(asked.error());
  } catch (const std::exception& error) {  // out of memory, or a fault of ours
    std::fprintf(stderr, "ait: error: %s\n", error.what());
    return kCannot;
  }
}
