// From the command line to the command it asks for.
//
//   auto asked = parse_command_line("ait", {"show", "layer.npy"}, all_commands());
//   if (!asked) …                                              // kUsage
//   if (auto* command = std::get_if<std::unique_ptr<Command>>(&*asked)) (*command)->run();
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cli/command.h"

namespace ait::cli {

// Help or the version, asked for (for stdout) or called for by a missing subcommand (for stderr).
struct PrintText {
  std::string text;
  bool asked_for = true;
};

using Asked = std::variant<PrintText, std::unique_ptr<Command>>;

// `program` is the name in the help: "ait" or "msit". Sets the log level where -l gives one. kUsage
// with one line that says where the help is.
Result<Asked> parse_command_line(const std::string& program, std::vector<std::string> arguments,
                                 const Registry& registry);

}  // namespace ait::cli
