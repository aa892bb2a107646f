// Every command of the program.
#pragma once

#include "cli/command.h"

namespace ait::cli {

// In the order of the help.
Registry all_commands();

}  // namespace ait::cli
