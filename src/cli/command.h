// A command of the program: its options, its help and what it does, all in its own file.
//
//   struct GreetOptions {
//     std::string name;
//   };
//
//   class GreetCommand : public CommandOf<GreetOptions> {
//    public:
//     void add_options(OptionSet& set) override { set.add_operand("NAME", options_.name, "whom"); }
//     int run() override { return print("Hello " + options_.name + "\n"); }
//   };
//
//   CommandEntry greet_command() {
//     return {"greet", "Say hello", {"NAME", {"greet World"}}, &make_command<GreetCommand>};
//   }
//
// A line in registry.cpp makes it known: `ait greet World`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/option_set.h"

namespace ait::cli {

class Command {
 public:
  virtual ~Command() = default;

  virtual void add_options(OptionSet& set) = 0;

  // Makes values of the words that were given. kUsage; where the help is will be added to it.
  virtual Result<void> understand() { return {}; }

  // Prints the results and returns the exit status.
  virtual int run() = 0;

  std::string log_level = "info";  // of -l, which every command has
};

// A command that knows what it was asked to do as one value, which tests can look at.
template <typename Options>
class CommandOf : public Command {
 public:
  const Options& options() const { return options_; }

 protected:
  Options options_;
};

// What most commands end with, and those that run another command.
inline constexpr const char* kExitStatus =
    "  0  done, whatever was found\n"
    "  2  wrong usage, unreadable input or nothing to do; one line says why\n";
inline constexpr const char* kExecExitStatus =
    "  that of the command, 128 + signal when it was killed\n"
    "  2  also if ait could not start the command; one line says why\n";

// What the help says beside purpose and options.
struct HelpPage {
  std::string usage;                      // what follows the command's name
  std::vector<std::string> examples;      // what follows the program's name
  std::string exit_status = kExitStatus;  // lines, indented
};

struct CommandEntry {
  std::string path;     // the words that call it: "llm compare"
  std::string purpose;  // one line
  HelpPage page;
  std::unique_ptr<Command> (*make)();
};

template <typename T>
std::unique_ptr<Command> make_command() {
  return std::make_unique<T>();
}

// A word before commands: "llm", "debug compare". The program itself is the one without a word.
struct CommandGroup {
  std::string path;
  std::string purpose;  // the names of its commands follow where it ends with a colon
  std::vector<std::string> examples;
};

struct Registry {
  std::vector<CommandGroup> groups;  // each before those inside it
  std::vector<CommandEntry> commands;
};

}  // namespace ait::cli
