// A host program: runs a model on the stand-in library, in threads and processes, and ends in the
// way that is asked for. tests/e2e/atb_host.py says what is to be recorded of it.
//
//   atb_host --layers 2 --rounds 3 --threads 8 --processes 2 --end thread-exit
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "models.h"
#include "operation.h"

namespace host {
namespace {

struct Options {
  ModelOptions model;
  atb::Settings settings;
  int rounds = 2;
  int threads = 0;  // 0: the main thread does it all
  int processes = 1;
  std::string fork = "before";  // the first operation, "after" the first round, or "during" the run
  std::string end = "return";
  int status = 0;
  bool execs_itself = false;
  bool chats = false;
};

// Read by handlers and between operations.
volatile sig_atomic_t interrupted = 0;
int interrupted_status = -1;
int pause_ms = 0;

void say(const std::string& text) {
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(9);
}

[[noreturn]] void fail(const std::string& text) {
  fprintf(stderr, "atb_host: %s\n", text.c_str());
  exit(2);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == separator) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

atb::Overflow parse_overflow(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3) fail("--overflow wants OPERATION_IDS:ROUND:KERNEL");
  return {parts[0], std::stoul(parts[1]), std::stoul(parts[2])};
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& name = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) fail(name + " wants a value");
      return words[++i];
    };
    const auto number = [&] { return std::stoi(value()); };
    if (name == "--model") {
      options.model.model = value();
    } else if (name == "--layers") {
      options.model.layers = number();
    } else if (name == "--rounds") {
      options.rounds = number();
    } else if (name == "--dims") {
      options.model.dims.clear();
      for (const std::string& size : split(value(), ',')) {
        options.model.dims.push_back(std::stol(size));
      }
    } else if (name == "--dtype") {
      options.model.dtype = number();
    } else if (name == "--format") {
      options.model.format = number();
    } else if (name == "--names") {
      options.model.has_parameter_names = true;
    } else if (name == "--param") {
      options.model.param = value();
    } else if (name == "--warm") {
      options.model.warm_operations = number();
    } else if (name == "--setups") {
      options.model.setups_per_execution = number();
    } else if (name == "--executions") {
      options.model.executions_per_setup = number();
    } else if (name == "--first-id") {
      atb::set_next_operation_id(number());
    } else if (name == "--device") {
      options.settings.device = number();
    } else if (name == "--old-statistics") {
      options.settings.old_statistics = true;
    } else if (name == "--overflow") {
      options.settings.overflows.push_back(parse_overflow(value()));
    } else if (name == "--threads") {
      options.threads = number();
    } else if (name == "--processes") {
      options.processes = number();
    } else if (name == "--fork") {
      options.fork = value();
    } else if (name == "--end") {
      options.end = value();
    } else if (name == "--status") {
      options.status = number();
    } else if (name == "--exec") {
      options.execs_itself = true;
    } else if (name == "--chat") {
      options.chats = true;
    } else if (name == "--pause-ms") {
      pause_ms = number();
    } else if (name == "--on-interrupt") {
      interrupted_status = number();
    } else {
      fail("unknown option " + name);
    }
  }
  return options;
}

void between_operations() {
  if (interrupted != 0) exit(interrupted_status);
  if (pause_ms > 0) usleep(static_cast<useconds_t>(pause_ms) * 1000);
}

int run_rounds(Session& session, atb::Context& context, int first, int end) {
  for (int round = first; round < end; ++round) {
    const int status = session.step(round, context, between_operations);
    if (status != atb::kOk) return status;
  }
  return atb::kOk;
}

int run_alone(const Options& options, const std::string& suffix) {
  atb::Context context(options.settings);
  context.set_stream();
  Session session(options.model, suffix);
  return run_rounds(session, context, 0, options.rounds);
}

// With "thread-exit" the process ends in here, called by a thread that is not the main one.
int run_threads(const Options& options, void (*meanwhile)(const Options&)) {
  std::vector<int> statuses(static_cast<size_t>(options.threads));
  std::vector<std::thread> threads;
  for (int i = 0; i < options.threads; ++i) {
    threads.emplace_back([&options, &statuses, i] {
      statuses[static_cast<size_t>(i)] = run_alone(options, "T" + std::to_string(i));
    });
  }
  meanwhile(options);
  std::thread last([&] {
    for (std::thread& thread : threads) thread.join();
    if (options.end == "thread-exit") exit(options.status);
  });
  last.join();
  int worst = 0;
  for (const int status : statuses) worst = std::max(worst, status);
  return worst;
}

void nothing(const Options& /*options*/) {}

int run_once(const Options& options) {
  return options.threads == 0 ? run_alone(options, "") : run_threads(options, nothing);
}

[[noreturn]] void finish(const Options& options, int status) {
  if (status == 0) status = options.status;
  say("host " + std::to_string(getpid()) + " ends\n");
  if (options.end == "_exit") _exit(status);
  if (options.end == "quick_exit") quick_exit(status);
  if (options.end == "abort") abort();
  if (options.end == "segv") raise(SIGSEGV);
  if (options.end == "kill") raise(SIGKILL);
  exit(status);
}

// Device numbers follow the processes, as with ranks of a distributed run.
Options of_process(Options options, int index) {
  options.settings.device += index;
  return options;
}

int wait_for_children(int status) {
  int child = 0;
  while (wait(&child) > 0) {
    if (WIFEXITED(child)) status = std::max(status, WEXITSTATUS(child));
    if (WIFSIGNALED(child)) status = std::max(status, 128 + WTERMSIG(child));
  }
  return status;
}

void fork_all(const Options& options, int (*child)(const Options&)) {
  for (int i = 1; i < options.processes; ++i) {
    const pid_t pid = fork();
    if (pid < 0) fail("fork failed");
    if (pid == 0) {
      const Options mine = of_process(options, i);
      finish(mine, child(mine));
    }
    say("host " + std::to_string(pid) + " device " + std::to_string(options.settings.device + i) +
        "\n");
  }
}

// All processes go on with the operations that the first one set up and ran once.
int run_and_fork_after_first_round(const Options& options) {
  atb::Context context(options.settings);
  context.set_stream();
  Session session(options.model, "");
  int status = run_rounds(session, context, 0, 1);
  static Session* forked_session = nullptr;
  static atb::Context* forked_context = nullptr;
  forked_session = &session;
  forked_context = &context;
  fork_all(options, [](const Options& mine) {
    forked_context->set_device(mine.settings.device);
    return run_rounds(*forked_session, *forked_context, 1, mine.rounds);
  });
  if (status == atb::kOk) status = run_rounds(session, context, 1, options.rounds);
  return wait_for_children(status);
}

int run_processes(const Options& options) {
  if (options.processes == 1) return run_once(options);
  if (options.fork == "after") return run_and_fork_after_first_round(options);
  if (options.fork == "during") {
    const int status = run_threads(options, [](const Options& parent) {
      fork_all(parent, [](const Options& mine) { return run_alone(mine, "C"); });
    });
    return wait_for_children(status);
  }
  fork_all(options, run_once);
  return wait_for_children(run_once(options));
}

int chat(const Options& options) {
  atb::Context context(options.settings);
  context.set_stream();
  Session session(options.model, "");
  say(isatty(STDIN_FILENO) != 0 ? "a terminal is listening\n" : "no terminal\n");
  char line[256];
  for (int round = 0;; ++round) {
    say("> ");
    if (fgets(line, sizeof line, stdin) == nullptr) break;
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "quit") == 0) break;
    const int status = session.step(round, context, between_operations);
    if (status != atb::kOk) return status;
    say("answer " + std::to_string(round) + " to " + line + "\n");
  }
  return atb::kOk;
}

}  // namespace
}  // namespace host

extern "C" int atb_host_run(int argc, char** argv) {
  using namespace host;
  const Options options = parse({argv + 1, argv + argc});
  if (options.execs_itself && getenv("ATB_HOST_HAS_EXECED") == nullptr) {
    setenv("ATB_HOST_HAS_EXECED", "1", 1);
    execv("/proc/self/exe", argv);
    fail("exec failed");
  }
  if (interrupted_status >= 0) signal(SIGINT, [](int) { interrupted = 1; });
  say("host " + std::to_string(getpid()) + " device " + std::to_string(options.settings.device) +
      "\n");
  finish(options, options.chats ? chat(options) : run_processes(options));
}
