// What the probe holds in one process: made at the library's first call, left behind by a forked
// child, brought to disk when the process exits.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstdint>
#include <string_view>

#include "line_files.h"
#include "record/claim.h"
#include "record/ledger.h"
#include "record/lock.h"
#include "record/writer.h"

namespace ait::probe {

using record::Lock;

// A model that has been reported.
struct ModelName {
  ModelName* next;
  size_t bytes;
  const char* text;
};

struct Process {
  record::ProcessName name;  // of its folders in the dump
  record::Ledger* ledger = nullptr;
  uint64_t next_graph = 0;
  uint64_t next_model = 0;

  // The rest under `lines_mutex`.
  LineFiles operations;
  LineFiles kernels;
  LineFiles statistics;
  char statistics_folder[64] = "";  // below cpu_profiling; decided at the first line
  ModelName* models = nullptr;
};

// Never null; the one of the calling process.
Process& process();
record::Writer& writer();

// For everything of a Process that is not a counter.
extern pthread_mutex_t lines_mutex;

// Says on stderr, once for a process, that something could not be stored.
void report_failure(Process& process, record::WriteStatus status, const char* path);

// Files submitted from exit handlers on and in forked children, where nobody will flush, are
// written at once.
void submit(const record::Job& job);

// Around everything that takes a lock or writes. False inside itself: a host whose memory or file
// functions lead back into the library must not meet its own lock. Signals wait meanwhile, because
// a handler that calls exit() would wait for a lock that its own thread holds; those that report a
// fault of the code itself do not. So does pthread_cancel, which would end the thread with the lock
// in its hands. The host finds errno as it was, and no signal that only our writing has caused.
class Entry {
 public:
  Entry();
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  explicit operator bool() const { return entered_; }

 private:
  bool entered_;
  int errno_before_ = 0;
  int cancel_before_ = 0;
  sigset_t signals_before_;
};

}  // namespace ait::probe
