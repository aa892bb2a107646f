// Writes tensor files behind the back of whoever records them: one thread, one queue of bounded
// size.
//
//   Writer writer;
//   Job job;
//   job.path = path;
//   job.encoding = Encoding::kAtbBin;
//   job.image = {ElementType::kFloat32, dims, 2, data, sizeof data};
//   writer.submit(job);  // the tensor may be overwritten as soon as this returns
//   data[0] = 0;
//   writer.flush();  // now every file submitted so far is there, or has failed
//   return writer.counters().failed;
//
// tests/record/example_test.cpp runs this example.
//
// Files appear whole or not at all (atomic_file.h), in the order of submission, so that of two jobs
// for one path the later wins. A failure never stops the writer: the first is remembered, all are
// counted, and the host runs on.
//
// All functions may be called from many threads at once. After fork() the child has an empty queue,
// counters at zero, and a thread of its own as soon as it submits; what was queued is written by
// the parent alone. Exit is the owner's business: flush, or let the destructor do it.
//
// This is the main header of `record`, the library that lives in other people's processes: it
// throws nothing and needs no shared object but libc's. A new encoding is a file pair like
// npy_encoder.h that fills a FileImage, a value of Encoding with its case in writer.cpp, and a case
// in formats/write.cpp.
#pragma once

#include <pthread.h>

#include <climits>
#include <cstddef>
#include <cstdint>

#include "record/atb_bin_encoder.h"
#include "record/atomic_file.h"
#include "record/known_files.h"
#include "record/tensor_image.h"

namespace ait::record {

enum class Encoding : uint8_t {
  kAtbBin,
  kAtbBinDescription,  // no data, only type and shape
  kNpy,
  kTorch,
  kBytes,  // `header`, then `image.data` as they are
  kNone,   // no file: `done` is called when it is this job's turn
};

// Everything here is copied by `submit`, the tensor's bytes too unless `borrowed` says otherwise.
struct Job {
  const char* path = nullptr;
  Encoding encoding = Encoding::kTorch;
  int atb_format = kAtbFormatNd;
  TensorImage image{};
  // Goes before the bytes of kBytes: a header of the caller's making.
  const void* header = nullptr;
  size_t header_bytes = 0;

  // Puts the `image.bytes` bytes at `to` instead of having `image.data` copied: for memory of a
  // device, or with gaps. Called by `submit`, in its thread. Returns 0 or an errno, with which the
  // job then fails.
  int (*fill)(void* context, void* to) = nullptr;
  // `image.data` is neither copied nor changed by anybody until `done` is called.
  bool borrowed = false;

  // Called once, when the file is there or has failed: by the writer's thread, or by `submit`
  // itself where the job did not go through the queue. It must not call the writer.
  void (*done)(void* context, const char* path, WriteStatus status) = nullptr;
  void* context = nullptr;
};

struct WriterOptions {
  // Of tensors waiting to be written, and of memory kept for the next ones. A tensor larger than
  // this is written by `submit` itself, without a copy.
  size_t max_queued_bytes = size_t{64} << 20;

  // Called by the writer's thread when it has written something and finds nothing more to do.
  // Returns after how many milliseconds it wants to be called again if there is still nothing, or a
  // negative number. It must not call the writer.
  int (*idle)(void* context) = nullptr;
  void* idle_context = nullptr;

  // Where torch files are looked up that were written before, by this writer or by others. Lives
  // longer than the writer. Null: every file is written.
  KnownFiles* known = nullptr;
};

// submitted = written + failed + those still under way.
struct WriterCounters {
  uint64_t submitted = 0;
  uint64_t written = 0;
  uint64_t failed = 0;
  uint64_t bytes_written = 0;          // of files, headers included
  WriteStatus first_failure;           // ok() if nothing has failed
  const char* first_failed_path = "";  // lives as long as the writer
};

class Writer {
 public:
  explicit Writer(const WriterOptions& options = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Waits while the queue is full, in the order of arrival. Whatever happens to the job is said by
  // `done` and the counters. Where no thread or no memory can be had, the file is written before it
  // returns.
  void submit(const Job& job);

  // Waits until the jobs of every `submit` that has returned are done with.
  void flush();

  WriterCounters counters() const;

 private:
  struct Node;
  struct Layout;
  friend struct ForkHandlers;

  static void* thread_main(void* self);
  static Node* make_node(const Job& job, const Layout& layout, Node* memory, WriteStatus& status);
  void run();
  void write_first();
  void nap();
  bool start_thread();
  void wait_for_room(size_t charge_bytes);
  void wait_for(pthread_cond_t& condition);
  Node* take_kept(const Layout& layout);
  void keep(Node* node);
  void enqueue(Node* node);
  void count(const char* path, WriteStatus status, uint64_t file_bytes);
  void start_over_in_child();

  const WriterOptions options_;

  // Guards all that follows; never held while a file is written or a callback runs.
  mutable pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t work_;      // for the thread: something is queued, or it is to stop
  pthread_cond_t room_;      // for submit: there is room again, or it is the next one's turn
  pthread_cond_t progress_;  // for flush: something is finished
  pthread_t thread_{};
  bool thread_runs_ = false;
  bool thread_left_ = false;  // it had nothing to do for a while, and is to be joined
  bool stopping_ = false;
  bool napping_ = false;  // the thread, for a moment: no need to wake it
  int waiting_ = 0;       // threads that it must not nap for

  Node* first_ = nullptr;
  Node* last_ = nullptr;
  size_t queued_bytes_ = 0;  // from the moment `submit` found room until the file is finished
  uint64_t next_turn_ = 0;
  uint64_t turn_ = 0;
  uint64_t enqueued_ = 0;
  uint64_t finished_ = 0;
  uint64_t flush_target_ = 0;  // the nearest that flush waits for; none if it is reached already

  // Memory of finished jobs, by size: fresh memory costs the kernel about as much as writing the
  // file does.
  static constexpr int kMaxExponent = 48;
  static constexpr int kSizeClasses = 4 * kMaxExponent;
  Node* kept_[kSizeClasses] = {};
  size_t kept_bytes_ = 0;

  WriterCounters counters_;
  char first_failed_path_[PATH_MAX] = "";

  Writer* previous_ = nullptr;  // of all writers, for fork
  Writer* next_ = nullptr;
};

}  // namespace ait::record
