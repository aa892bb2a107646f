#include "cli/process_io.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/log.h"
#include "base/output_file.h"

namespace ait::cli {
namespace {

std::atomic<bool> graceful = false;
std::atomic<bool> stop_requested = false;

// Async-signal-safe all through.
void end_on_signal(int signal_number) {
  if (graceful && !stop_requested.exchange(true)) return;
  remove_unfinished_files();
  static constexpr std::string_view kMessage = "\nait: stopped; no report was written\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(128 + signal_number);
}

// Mapped files raise SIGBUS where they end earlier than they did when they were opened.
void end_on_shrunk_file(int /*signal_number*/) {
  static std::atomic_flag said;  // every thread that reads the file gets here
  while (said.test_and_set()) ::pause();
  remove_unfinished_files();
  static constexpr std::string_view kMessage =
      "ait: error: a file became shorter while it was read; is it still being written?\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kCannot);
}

}  // namespace

size_t stdout_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

Result<void> write_stdout(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return {};
    if (written < 0)
      return fail(Error(ErrorCode::kUnwritable)
                  << "standard output cannot be written: " << system_message(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

int print(std::string_view text, int status) {
  const auto written = write_stdout(text);
  return written ? status : report_error(written.error());
}

int report_error(const Error& error) {
  log_error(error.text());
  return kCannot;
}

void install_signal_handlers() {
  const auto handle = [](int signal_number, void (*handler)(int), int flags = 0) {
    struct sigaction action{};
    ::sigaction(signal_number, nullptr, &action);
    // nohup and background shells ignore some of them on purpose.
    if (action.sa_handler == SIG_IGN) return;
    action = {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = handler;
    action.sa_flags = flags;
    ::sigaction(signal_number, &action, nullptr);
  };
  // Not SIG_IGN, which a command that we start would inherit: a handler goes when it starts.
  for (const int signal_number : {SIGPIPE, SIGXFSZ}) handle(signal_number, [](int) {}, SA_RESTART);
  handle(SIGBUS, end_on_shrunk_file);
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) handle(signal_number, end_on_signal);
}

GracefulStop::GracefulStop() {
  stop_requested = false;
  graceful = true;
}

GracefulStop::~GracefulStop() { graceful = false; }

const std::atomic<bool>& GracefulStop::requested() const { return stop_requested; }

void GracefulStop::request() const { stop_requested = true; }

}  // namespace ait::cli
