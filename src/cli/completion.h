// Scripts by which shells complete the words of a command line.
//
//   auto script = completion_script("bash", command_texts(all_commands()));
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/command_texts.h"

namespace ait::cli {

inline const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

// For `ait`, and for `msit`, which is the same program. `shell` is one of kShells.
std::string completion_script(const std::string& shell, const std::vector<CommandText>& commands);

}  // namespace ait::cli
