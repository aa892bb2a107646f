#include "process.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "probe.h"

namespace ait::probe {
namespace {

// Guards the making of what follows. Everything lives until the process ends: other threads may
// still record while exit() runs.
pthread_mutex_t making_mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<const Settings*> the_settings{nullptr};
std::atomic<Process*> the_process{nullptr};
std::atomic<record::Writer*> the_writer{nullptr};
std::atomic<bool> exiting{false};
bool fork_handlers_installed = false;

__attribute__((tls_model("initial-exec"))) __thread bool inside = false;

// Used when there is no memory for another.
alignas(Process) char spare_process[sizeof(Process)];
alignas(record::Writer) char spare_writer[sizeof(record::Writer)];

template <typename T>
void* memory_for(char (&spare)[sizeof(T)]) {
  void* memory = std::malloc(sizeof(T));
  return memory == nullptr ? spare : memory;
}

// No lock may be held by a thread that the child will not have. The child starts over: the ledger,
// the tables and the counts are the parent's.
void before_fork() {
  ::pthread_mutex_lock(&making_mutex);
  ::pthread_mutex_lock(&lines_mutex);
}
void after_fork() {
  ::pthread_mutex_unlock(&lines_mutex);
  ::pthread_mutex_unlock(&making_mutex);
}
void after_fork_in_child() {
  the_process.store(nullptr, std::memory_order_relaxed);
  after_fork();
}

void install_fork_handlers() {
  if (fork_handlers_installed) return;
  fork_handlers_installed = true;
  ::pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void say(const char* text, int length) {
  if (length <= 0) return;
  if (::write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) return;  // nobody to tell
}

Process* make_process(const Settings& settings) {
  auto* process = new (memory_for<Process>(spare_process)) Process;
  process->pid = static_cast<uint64_t>(::getpid());
  process->ledger =
      record::open_ledger(settings.active() ? settings.scratch : nullptr, process->pid);
  char text[512];
  if (settings.active() && settings.scratch != nullptr && process->ledger->shared == 0)
    say(text, std::snprintf(text, sizeof text,
                            "ait probe: process %llu cannot keep its counts in %s; the summary "
                            "will not know of it\n",
                            static_cast<unsigned long long>(process->pid), settings.scratch));
  if (settings.debug && settings.active())
    say(text, std::snprintf(text, sizeof text, "ait probe: process %llu is recorded to %s\n",
                            static_cast<unsigned long long>(process->pid),
                            settings.output == nullptr ? "nowhere" : settings.output));
  return process;
}

void finish() {
  if (Process* process = the_process.load(std::memory_order_acquire); process != nullptr) {
    if (record::Writer* writer = the_writer.load(std::memory_order_acquire); writer != nullptr)
      writer->flush();
    __atomic_store_n(&process->ledger->ended, 1, __ATOMIC_RELEASE);
  }
}

// exit() and the end of main come here, after the host's own handlers.
__attribute__((destructor)) void leave() {
  exiting.store(true, std::memory_order_seq_cst);
  finish();
}

}  // namespace

pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER;

const Settings& settings() {
  const Settings* ready = the_settings.load(std::memory_order_acquire);
  if (ready != nullptr) return *ready;
  static const Settings none;
  alignas(Settings) static char memory[sizeof(Settings)];
  const Entry entry;
  if (!entry) return none;
  const Lock lock(making_mutex);
  ready = the_settings.load(std::memory_order_relaxed);
  if (ready == nullptr) {
    ready = new (memory)
        Settings(read_settings([](const char* name) -> const char* { return std::getenv(name); }));
    the_settings.store(ready, std::memory_order_release);
  }
  return *ready;
}

Process& process() {
  Process* ready = the_process.load(std::memory_order_acquire);
  if (ready != nullptr) return *ready;
  const Settings& wanted = settings();
  const Entry entry;
  const Lock lock(making_mutex);
  ready = the_process.load(std::memory_order_relaxed);
  if (ready == nullptr) {
    install_fork_handlers();
    ready = make_process(wanted);
    the_process.store(ready, std::memory_order_release);
  }
  return *ready;
}

record::Writer& writer() {
  record::Writer* ready = the_writer.load(std::memory_order_acquire);
  if (ready != nullptr) return *ready;
  const Lock lock(making_mutex);
  ready = the_writer.load(std::memory_order_relaxed);
  if (ready == nullptr) {
    ready = new (memory_for<record::Writer>(spare_writer)) record::Writer;
    the_writer.store(ready, std::memory_order_release);
  }
  return *ready;
}

void report_failure(Process& process, record::WriteStatus status, const char* path) {
  if (!record::note_failure(*process.ledger, status.error_number, status.step, path)) return;
  char reason[128];
  char text[1536];
  say(text,
      std::snprintf(text, sizeof text,
                    "ait probe: cannot %s: %s (%.1024s); the run goes on, and what cannot be "
                    "stored is counted\n",
                    status.step, ::strerror_r(status.error_number, reason, sizeof reason), path));
}

void submit(const record::Job& job) {
  const bool late = exiting.load(std::memory_order_seq_cst);
  if (late) __atomic_store_n(&process().ledger->ended, 0, __ATOMIC_RELEASE);
  writer().submit(job);
  if (late || exiting.load(std::memory_order_seq_cst)) finish();
}

Entry::Entry() : entered_(!inside) {
  if (!entered_) return;
  inside = true;
  sigset_t blocked;
  ::sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&blocked, signal);
  ::sigprocmask(SIG_BLOCK, &blocked, &signals_before_);
}

Entry::~Entry() {
  if (!entered_) return;
  ::sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
  inside = false;
}

}  // namespace ait::probe
