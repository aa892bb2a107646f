// From the command line to the command it asks for.
//
//   auto command = parse_command_line("ait", {"show", "layer.npy"});
//   if (!command) …                                      // kUsage
//   run_show(std::get<ShowOptions>(*command));
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"

namespace ait::cli {

// Help or the version, asked for (for stdout) or called for by a missing subcommand (for stderr).
struct PrintText {
  std::string text;
  bool asked_for = true;
};

using Command = std::variant<PrintText, CompareOptions, AclcmpOptions, DumpOptions, ErrcheckOptions,
                             ShowOptions, DemoOptions, DoctorOptions>;

// `program` is the name in the help: "ait" or "msit". Sets the log level where -l gives one. kUsage
// with one line that says where the help is.
Result<Command> parse_command_line(const std::string& program, std::vector<std::string> arguments);

}  // namespace ait::cli
