#include "process.h"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "probe.h"
#include "record/dump_names.h"

namespace ait::probe {
namespace {

// Guards the making of what follows. Everything lives until the process ends: other threads may
// still record while exit() runs.
pthread_mutex_t making_mutex = PTHREAD_MUTEX_INITIALIZER;
std::atomic<const Settings*> the_settings{nullptr};
std::atomic<Process*> the_process{nullptr};
std::atomic<bool> exiting{false};
// Forked children often end by _exit (Python's do), which calls no handler of ours.
std::atomic<bool> forked{false};

__attribute__((tls_model("initial-exec"))) __thread bool inside = false;
// This thread may have raised SIGPIPE or SIGXFSZ against itself.
__attribute__((tls_model("initial-exec"))) __thread bool write_failed = false;

// Topologies of one kind that one program reports.
constexpr uint64_t kMostReports = 1'000'000;

alignas(record::Writer) char the_writer[sizeof(record::Writer)];
// Used when there is no memory for another.
alignas(Process) char spare_process[sizeof(Process)];

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
  forked.store(true, std::memory_order_relaxed);
  after_fork();
}

// The only thing that happens when the library is loaded: a thread may fork while another makes its
// first call, and handlers that came with that call would come too late for it. The writer's are
// registered before ours, so that `making_mutex` is taken before its locks, as everywhere.
__attribute__((constructor)) void arrive() {
  new (the_writer) record::Writer;
  ::pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void say(const char* text, int length) {
  if (length <= 0) return;
  if (::write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) write_failed = true;
}

bool writes_a_dump(const Settings& settings) {
  return settings.output != nullptr && !settings.dry_run &&
         (settings.tensors || settings.layers || settings.models || settings.operations ||
          settings.kernels || settings.statistics);
}

record::ProcessName claim_name(const Settings& settings, uint64_t pid) {
  char dump[PATH_MAX];
  std::snprintf(dump, sizeof dump, "%s/%s", settings.output, record::kDumpFolder);
  const char* scratch = settings.scratch == nullptr ? "" : settings.scratch;
  const char* slash = std::strrchr(scratch, '/');
  return record::claim_name(dump, pid, slash == nullptr ? scratch : slash + 1);
}

Process* make_process(const Settings& settings) {
  void* memory = std::malloc(sizeof(Process));
  auto* process = new (memory == nullptr ? spare_process : memory) Process;
  const auto pid = static_cast<uint64_t>(::getpid());
  process->ledger = record::open_ledger(settings.active() ? settings.scratch : nullptr, pid);
  process->name =
      writes_a_dump(settings) ? claim_name(settings, pid) : record::process_name(pid, 0);
  process->ledger->name_number = process->name.number;
  // What an earlier program of this process has reported stays.
  process->next_graph = process->next_model = process->ledger->incarnation * kMostReports;
  char text[512];
  write_failed |= process->ledger->shared == 0;
  if (settings.active() && settings.scratch != nullptr && process->ledger->shared == 0)
    say(text, std::snprintf(text, sizeof text,
                            "ait probe: process %llu cannot keep its counts in %s; the summary "
                            "will not know what it recorded\n",
                            static_cast<unsigned long long>(pid), settings.scratch));
  if (settings.debug && settings.active())
    say(text, std::snprintf(text, sizeof text, "ait probe: process %llu is recorded to %s\n",
                            static_cast<unsigned long long>(pid),
                            settings.output == nullptr ? "nowhere" : settings.output));
  return process;
}

// A file that may not grow and a pipe that nobody reads not only fail: their signals wait for this
// thread to let signals in again, and would end the host. What the host blocks itself may be its
// own and stays.
void drop_signals_of_failed_writes(const sigset_t& blocked_by_host) {
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int signal : {SIGPIPE, SIGXFSZ})
    if (::sigismember(&blocked_by_host, signal) == 0) ::sigaddset(&ours, signal);
  const timespec now{};
  while (::sigtimedwait(&ours, nullptr, &now) > 0) {
  }
}

void finish() {
  if (Process* process = the_process.load(std::memory_order_acquire); process != nullptr) {
    writer().flush();
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
    ready = make_process(wanted);
    the_process.store(ready, std::memory_order_release);
  }
  return *ready;
}

record::Writer& writer() { return *std::launder(reinterpret_cast<record::Writer*>(the_writer)); }

void report_failure(Process& process, record::WriteStatus status, const char* path) {
  write_failed = true;
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
  const auto nobody_will_flush = [] {
    return exiting.load(std::memory_order_seq_cst) || forked.load(std::memory_order_relaxed);
  };
  if (nobody_will_flush()) __atomic_store_n(&process().ledger->ended, 0, __ATOMIC_RELEASE);
  writer().submit(job);
  if (nobody_will_flush()) finish();
}

Entry::Entry() : entered_(!inside) {
  if (!entered_) return;
  errno_before_ = errno;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before_);
  sigset_t blocked;
  ::sigfillset(&blocked);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&blocked, signal);
  ::sigprocmask(SIG_BLOCK, &blocked, &signals_before_);
  inside = true;
}

Entry::~Entry() {
  if (!entered_) return;
  if (write_failed) drop_signals_of_failed_writes(signals_before_);
  write_failed = false;
  // First of all: a handler that waited until now may record, or end the host with handlers that
  // do.
  inside = false;
  ::sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
  ::pthread_setcancelstate(cancel_before_, nullptr);
  errno = errno_before_;
}

}  // namespace ait::probe
