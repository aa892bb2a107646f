// What a command line of the product means.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "cli/registry.h"

namespace ait::cli {

// The options of the command that was given.
template <typename Options>
Result<Options> parse(std::vector<std::string> arguments) {
  auto asked = parse_command_line("ait", std::move(arguments), all_commands());
  if (!asked) return fail(asked.error());
  const auto& command = std::get<std::unique_ptr<Command>>(*asked);
  return dynamic_cast<const CommandOf<Options>&>(*command).options();
}

}  // namespace ait::cli
