// Every command with its options in words: what completion and man pages are made of, so that the
// help is the only place where an option is described.
//
//   for (const CommandText& command : command_texts(all_commands()))
//     for (const OptionText& option : command.options) …
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace ait::cli {

struct OptionText {
  std::vector<std::string> names;    // as they can be typed: "-o", "--output"
  std::string group;                 // the heading in the help
  std::string meta;                  // what stands for the value, "DIR"; empty: it takes none
  std::vector<std::string> choices;  // the values there are, where they are known
  std::string help;                  // may hold line ends
};

struct CommandText {
  std::string
      path;  // "llm compare"; a group of commands has one, too, and the program an empty one
  std::string purpose;  // one line
  HelpPage page;
  std::vector<std::string> commands;  // of a group: the words that may follow
  std::vector<OptionText> options;
  std::vector<OptionText> operands;  // named by what stands for them in the help
};

// The program first, then groups and commands as the registry has them.
std::vector<CommandText> command_texts(const Registry& registry);

// "llm" of "llm compare", "" of "llm".
std::string group_of(const std::string& path);

// Whether a value that the help calls so is a file or folder.
bool names_file(const std::string& meta);

}  // namespace ait::cli
