// The help of a command as a page for man(1).
//
//   man_page(text, texts)   // ".TH AIT\-SHOW 1 …"
#pragma once

#include <string>
#include <vector>

#include "cli/command_texts.h"

namespace ait::cli {

// "ait", "ait-llm-compare": the page's name, and that of its file with ".1" behind it.
std::string man_name(const CommandText& command);

// `all` are those that the page refers to.
std::string man_page(const CommandText& command, const std::vector<CommandText>& all);

}  // namespace ait::cli
