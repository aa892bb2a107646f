// How the program meets the outside: standard output, and signals that end it.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace ait::cli {

// Exit statuses; docs/compare.md says when.
inline constexpr int kDone = 0;
inline constexpr int kFailOnHit = 1;
inline constexpr int kCannot = 2;
inline constexpr int kInterruptedStatus = 130;

// All of it, or kUnwritable (a full disk behind a redirection). A reader that went away (`| head`)
// is no error.
Result<void> write_stdout(std::string_view text);

// Columns of the terminal that stdout is; 0 where it is none.
size_t stdout_columns();

// write_stdout, with a failure logged and turned into kCannot; otherwise `status`.
int print(std::string_view text, int status = kDone);

// Logs the error and returns kCannot.
int report_error(const Error& error);

// Ctrl-C, SIGTERM and a closed terminal remove unfinished reports and end with 128 + signal.
// A closed pipe and a file that may not grow (`ulimit -f`) end nothing: they show as failed writes. A
// file that shrinks while it is mapped ends with kCannot. Call once, before any output file is made.
void install_signal_handlers();

// While one lives, the first such signal only asks for an end; the second ends at once as above.
class GracefulStop {
 public:
  GracefulStop();
  ~GracefulStop();
  GracefulStop(const GracefulStop&) = delete;
  GracefulStop& operator=(const GracefulStop&) = delete;

  const std::atomic<bool>& requested() const;
  void request() const;
};

}  // namespace ait::cli
