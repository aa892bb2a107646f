// The life of a command that ait runs for somebody: it has the terminal, ait waits.
//
//   auto words = split_command(exec);  // "sh -c 'exit 3'", command_words.h
//   if (!words) return fail(words.error());
//   auto program = find_program(words->front(), "/usr/bin:/bin");  // program.h
//   if (!program) return fail(program.error());
//   Environment environment = Environment::of_this_process();
//   environment.set("ATB_OUTPUT_DIR", "/out/");
//   auto end = run_child(program->path, *words, environment);
//   if (!end) return fail(end.error());  // it could not be started
//   return end->status();                // 3
//
// tests/launch/example_test.cpp runs this example. This is the main header of `launch`; preload.h
// puts a probe into the environment, process.h finds what the command has left running.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/environment.h"

namespace ait::launch {

struct ChildEnd {
  int exit_status = 0;
  int signal = 0;  // that killed it, or 0

  // As a shell says it.
  int status() const { return signal == 0 ? exit_status : 128 + signal; }
};

// Where a command's standard output goes: that of ait, or where our own is to hold nothing but our
// document, that of messages.
enum class Output : uint8_t { kInherited, kToStandardError };

// Runs the program at `path` with standard input, output and error as they are and in the same
// process group, so that a prompt, Ctrl-C and Ctrl-Z work as if ait were not there, and waits for
// its end.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT do not end the caller meanwhile. Those that somebody sent
// with kill are passed on; those of the terminal went to the command by themselves. Only to be
// called while the process has a single thread.
Result<ChildEnd> run_child(const std::string& path, const std::vector<std::string>& words,
                           const Environment& environment, Output output = Output::kInherited);

}  // namespace ait::launch
