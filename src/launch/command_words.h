// The text of --exec, split into the words of a command.
//
//   split_command("bash run.sh 'a b'")  ->  {"bash", "run.sh", "a b"}
//
// Words and quotes are those of a POSIX shell, but there is no shell: nothing is expanded, so that
// $HOME, *.py and ~ arrive as they are. What only a shell could do is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::launch {

// At least one word. kUsage for blank text, for an open quote, and for an unquoted > < | & ; $( `
// or line end, with the advice to write a script.
Result<std::vector<std::string>> split_command(std::string_view text);

}  // namespace ait::launch
