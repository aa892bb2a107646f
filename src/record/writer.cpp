#include "record/writer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "record/file_image.h"
#include "record/lock.h"
#include "record/npy_encoder.h"
#include "record/old_glibc.h"
#include "record/torch_zip_encoder.h"

namespace ait::record {
namespace {

constexpr size_t kPayloadAlignment = alignof(max_align_t);
// The thread looks again after this before it sleeps for good: to be woken for each of many small
// tensors would cost the host more than the copy.
constexpr int kNapMilliseconds = 1;
// Without work for so long it leaves: a process whose other threads have all ended would otherwise
// never end.
constexpr int kIdleMilliseconds = 1000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kNanosPerMilli = 1'000'000;

// The opposite of Lock, inside one: while a file is written or a callback runs, others must not
// have to wait for the mutex.
class Unlocked {
 public:
  explicit Unlocked(pthread_mutex_t& mutex) : mutex_(mutex) { ::pthread_mutex_unlock(&mutex_); }
  ~Unlocked() { ::pthread_mutex_lock(&mutex_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

void make_condition(pthread_cond_t& condition) {
  pthread_condattr_t attributes;
  ::pthread_condattr_init(&attributes);
  ::pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  ::pthread_cond_init(&condition, &attributes);
  ::pthread_condattr_destroy(&attributes);
}

timespec after_milliseconds(int milliseconds) {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t nanos = now.tv_nsec + milliseconds * kNanosPerMilli;
  return {now.tv_sec + nanos / kNanosPerSecond, nanos % kNanosPerSecond};
}

EncodeResult encode(const Job& job, FileImage& file) {
  switch (job.encoding) {
    case Encoding::kAtbBin:
      return encode_atb_bin(job.image, file, job.atb_format);
    case Encoding::kAtbBinDescription:
      return encode_atb_bin_description(job.image, file, job.atb_format);
    case Encoding::kNpy:
      return encode_npy(job.image, file);
    case Encoding::kTorch:
      return encode_torch(job.image, file);
    case Encoding::kBytes:
      file.add_reference(job.header, job.header_bytes);
      file.add_reference(job.image.data, job.image.bytes);
      return EncodeResult::kOk;
    case Encoding::kNone:
      return EncodeResult::kOk;
  }
  return EncodeResult::kBadImage;
}

WriteStatus encode_failure(EncodeResult result) {
  switch (result) {
    case EncodeResult::kUnsupportedType:
      return {ENOTSUP, "store this element type in the file's format"};
    case EncodeResult::kTooManyDimensions:
      return {ENOTSUP, "store so many dimensions in the file's format"};
    case EncodeResult::kNoMemory:
      return {ENOMEM, "prepare the file's header"};
    default:
      return {EINVAL, "make sense of the tensor's dimensions"};
  }
}

WriteStatus write_job(const Job& job, KnownFiles* known, uint64_t& file_bytes) {
  if (job.encoding == Encoding::kNone) return {};
  FileImage file;
  if (const EncodeResult result = encode(job, file); result != EncodeResult::kOk)
    return encode_failure(result);
  file_bytes = file.size_bytes();
  // Files of other kinds carry no checksum that would tell them apart.
  if (known == nullptr || job.encoding != Encoding::kTorch) return file.write(job.path);
  WriteStatus status;
  status.linked = known->link(job.path, file);
  if (status.linked) return status;
  status = file.write(job.path);
  if (status.ok()) known->remember(job.path, file);
  return status;
}

}  // namespace

// A job with all that belongs to it, in one piece of memory: node, dimensions, path, header, bytes
// of the tensor.
struct Writer::Node {
  Node* next;
  size_t charge_bytes;
  size_t memory_bytes;
  int size_class;
  Job job;
};

// Where in a node's memory things are. Its size is rounded up by at most a quarter, to one of
// kSizeClasses sizes, so that tensors of like size can follow each other in it.
struct Writer::Layout {
  size_t dims_bytes = 0;
  size_t path_at = 0;
  size_t path_bytes = 0;
  size_t header_at = 0;
  size_t payload_at = 0;
  size_t payload_bytes = 0;
  size_t charge_bytes = 0;         // what the job counts for in the queue: never nothing
  size_t memory_bytes = SIZE_MAX;  // too much to be had
  int size_class = 0;

  explicit Layout(const Job& job) {
    const bool copied = !job.borrowed && job.encoding != Encoding::kAtbBinDescription;
    payload_bytes = copied ? job.image.bytes : 0;
    path_bytes = std::strlen(job.path) + 1;
    size_t total;
    if (__builtin_mul_overflow(job.image.rank, sizeof(int64_t), &dims_bytes) ||
        __builtin_add_overflow(dims_bytes, sizeof(Node), &path_at) ||
        __builtin_add_overflow(path_at, path_bytes, &header_at) ||
        __builtin_add_overflow(header_at, job.header_bytes, &payload_at) ||
        __builtin_add_overflow(payload_at, kPayloadAlignment, &payload_at) ||
        __builtin_add_overflow(payload_at, payload_bytes, &total) ||
        __builtin_add_overflow(payload_at, job.image.bytes, &charge_bytes)) {
      charge_bytes = SIZE_MAX;
      return;
    }
    payload_at -= payload_at % kPayloadAlignment;
    const int exponent =
        static_cast<int>(sizeof(size_t) * CHAR_BIT) - 1 - __builtin_clzl(total - 1);
    const size_t step = size_t{1} << (exponent - 2);  // four sizes to each power of two
    const size_t steps = (total - 1) / step + 1;      // 5 to 8
    if (exponent >= kMaxExponent) return;
    memory_bytes = steps * step;
    size_class = exponent * 4 + static_cast<int>(steps) - 5;
  }
};

// fork() copies the memory but only one of the threads. Every lock is taken before, so that no
// writer is copied in the middle of a change.
struct ForkHandlers {
  static pthread_mutex_t mutex;  // guards the list of writers
  static Writer* first;
  static bool installed;

  static void add(Writer& writer) {
    const Lock lock(mutex);
    if (!installed) installed = ::pthread_atfork(before, after_in_parent, after_in_child) == 0;
    writer.next_ = first;
    if (first != nullptr) first->previous_ = &writer;
    first = &writer;
  }

  static void remove(Writer& writer) {
    const Lock lock(mutex);
    (writer.previous_ != nullptr ? writer.previous_->next_ : first) = writer.next_;
    if (writer.next_ != nullptr) writer.next_->previous_ = writer.previous_;
  }

  static void before() {
    ::pthread_mutex_lock(&mutex);
    for (Writer* writer = first; writer != nullptr; writer = writer->next_)
      ::pthread_mutex_lock(&writer->mutex_);
  }

  static void after_in_parent() {
    for (Writer* writer = first; writer != nullptr; writer = writer->next_)
      ::pthread_mutex_unlock(&writer->mutex_);
    ::pthread_mutex_unlock(&mutex);
  }

  static void after_in_child() {
    for (Writer* writer = first; writer != nullptr; writer = writer->next_)
      writer->start_over_in_child();
    after_in_parent();
  }
};

pthread_mutex_t ForkHandlers::mutex = PTHREAD_MUTEX_INITIALIZER;
Writer* ForkHandlers::first = nullptr;
bool ForkHandlers::installed = false;

Writer::Writer(const WriterOptions& options) : options_(options) {
  make_condition(work_);
  make_condition(room_);
  make_condition(progress_);
  ForkHandlers::add(*this);
}

Writer::~Writer() {
  flush();
  bool join;
  {
    const Lock lock(mutex_);
    stopping_ = true;
    join = thread_runs_ || thread_left_;
    ::pthread_cond_signal(&work_);
  }
  if (join) ::pthread_join(thread_, nullptr);
  ForkHandlers::remove(*this);
  for (Node* node : kept_) {
    while (node != nullptr) {
      Node* next = node->next;
      std::free(node);
      node = next;
    }
  }
  ::pthread_cond_destroy(&work_);
  ::pthread_cond_destroy(&room_);
  ::pthread_cond_destroy(&progress_);
  ::pthread_mutex_destroy(&mutex_);
}

void Writer::submit(const Job& job) {
  const Layout layout(job);
  size_t charge = layout.charge_bytes;
  bool queued = charge <= options_.max_queued_bytes || job.fill != nullptr;
  Node* node = nullptr;
  {
    const Lock lock(mutex_);
    ++counters_.submitted;
    if (queued) {
      wait_for_room(charge);
      queued = thread_runs_ || start_thread();
      if (queued) node = take_kept(layout);
    } else {
      charge = 0;
    }
  }

  WriteStatus status;
  if (queued || job.fill != nullptr) node = make_node(job, layout, node, status);
  if (node != nullptr && queued) {
    node->charge_bytes = charge;
    return enqueue(node);
  }
  flush();  // to keep the order
  uint64_t file_bytes = 0;
  if (status.ok())
    status = write_job(node != nullptr ? node->job : job, options_.known, file_bytes);
  if (job.done != nullptr) job.done(job.context, job.path, status);
  std::free(node);
  const Lock lock(mutex_);
  count(job.path, status, file_bytes);
  queued_bytes_ -= charge;
  ::pthread_cond_broadcast(&room_);
}

void Writer::wait_for_room(size_t charge_bytes) {
  const size_t max = options_.max_queued_bytes;
  const auto fits = [&] {
    return queued_bytes_ == 0 || (charge_bytes <= max && queued_bytes_ <= max - charge_bytes);
  };
  // Turns, so that a large tensor is not overtaken for ever by small ones.
  const uint64_t turn = next_turn_++;
  while (turn != turn_ || !fits()) wait_for(room_);
  ++turn_;
  queued_bytes_ += charge_bytes;
  if (turn_ != next_turn_) ::pthread_cond_broadcast(&room_);
}

void Writer::flush() {
  const Lock lock(mutex_);
  const uint64_t target = enqueued_;
  while (finished_ < target) {
    if (flush_target_ <= finished_ || target < flush_target_) flush_target_ = target;
    wait_for(progress_);
  }
}

void Writer::wait_for(pthread_cond_t& condition) {
  ++waiting_;
  if (napping_) ::pthread_cond_signal(&work_);
  ::pthread_cond_wait(&condition, &mutex_);
  --waiting_;
}

WriterCounters Writer::counters() const {
  const Lock lock(mutex_);
  return counters_;
}

// Turns `memory`, or new memory if that is null, into a copy of the job. Null if there is no
// memory, or, with a status, if the job's bytes cannot be had.
Writer::Node* Writer::make_node(const Job& job, const Layout& layout, Node* memory,
                                WriteStatus& status) {
  Node* node = memory;
  if (node == nullptr) node = static_cast<Node*>(std::malloc(layout.memory_bytes));
  if (node == nullptr) {
    if (job.fill != nullptr) status = {ENOMEM, "set memory aside"};
    return nullptr;
  }
  char* bytes = reinterpret_cast<char*>(node);
  char* dims = bytes + sizeof(Node);
  char* path = bytes + layout.path_at;
  char* header = bytes + layout.header_at;
  char* payload = bytes + layout.payload_at;
  if (job.image.rank > 0) std::memcpy(dims, job.image.dims, layout.dims_bytes);
  std::memcpy(path, job.path, layout.path_bytes);
  if (job.header_bytes > 0) std::memcpy(header, job.header, job.header_bytes);
  node->next = nullptr;
  node->memory_bytes = layout.memory_bytes;
  node->size_class = layout.size_class;
  node->job = job;
  node->job.image.dims = reinterpret_cast<const int64_t*>(dims);
  node->job.path = path;
  node->job.header = header;
  if (layout.payload_bytes == 0) return node;
  node->job.image.data = payload;
  if (job.fill == nullptr) {
    std::memcpy(payload, job.image.data, layout.payload_bytes);
  } else if (const int error = job.fill(job.context, payload); error != 0) {
    status = {error, "copy the tensor"};
    std::free(node);
    return nullptr;
  }
  return node;
}

Writer::Node* Writer::take_kept(const Layout& layout) {
  Node* node = kept_[layout.size_class];
  if (node == nullptr) return nullptr;
  kept_[layout.size_class] = node->next;
  kept_bytes_ -= node->memory_bytes;
  return node;
}

void Writer::keep(Node* node) {
  node->next = kept_[node->size_class];
  kept_[node->size_class] = node;
  kept_bytes_ += node->memory_bytes;
}

void Writer::enqueue(Node* node) {
  const Lock lock(mutex_);
  (last_ != nullptr ? last_->next : first_) = node;
  last_ = node;
  ++enqueued_;
  if (!napping_) ::pthread_cond_signal(&work_);
}

void Writer::count(const char* path, WriteStatus status, uint64_t file_bytes) {
  if (status.ok()) {
    ++counters_.written;
    counters_.bytes_written += file_bytes;
  } else if (++counters_.failed == 1) {
    std::snprintf(first_failed_path_, sizeof first_failed_path_, "%s", path);
    counters_.first_failure = status;
    counters_.first_failed_path = first_failed_path_;
  }
}

bool Writer::start_thread() {
  if (thread_left_) ::pthread_join(thread_, nullptr);
  thread_left_ = false;
  // The host's signals are for the host's threads. (sigprocmask is pthread_sigmask, under a name
  // that old systems have.)
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  thread_runs_ = ::pthread_create(&thread_, nullptr, &Writer::thread_main, this) == 0;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return thread_runs_;
}

void* Writer::thread_main(void* self) {
  ::prctl(PR_SET_NAME, "ait-writer");
  static_cast<Writer*>(self)->run();
  return nullptr;
}

void Writer::run() {
  const Lock lock(mutex_);
  bool may_nap = false;
  bool idle_is_due = false;
  bool idle_has_time = false;
  timespec idle_time{};
  while (true) {
    if (first_ != nullptr) {
      write_first();
      may_nap = true;
      idle_is_due = options_.idle != nullptr;
    } else if (stopping_) {
      return;
    } else if (may_nap) {
      may_nap = false;
      nap();
    } else if (idle_is_due) {
      int again;
      {
        const Unlocked unlocked(mutex_);
        again = options_.idle(options_.idle_context);
      }
      idle_is_due = false;
      idle_has_time = again >= 0;
      if (idle_has_time) idle_time = after_milliseconds(again);
    } else if (idle_has_time) {
      idle_is_due = ::pthread_cond_timedwait(&work_, &mutex_, &idle_time) == ETIMEDOUT;
      idle_has_time = !idle_is_due;
    } else {
      const timespec end = after_milliseconds(kIdleMilliseconds);
      const bool idle = ::pthread_cond_timedwait(&work_, &mutex_, &end) == ETIMEDOUT;
      // A submit that has found room counts on us.
      if (!idle || first_ != nullptr || queued_bytes_ > 0 || stopping_) continue;
      thread_runs_ = false;
      thread_left_ = true;
      return;
    }
  }
}

void Writer::write_first() {
  Node* node = first_;
  first_ = node->next;
  if (first_ == nullptr) last_ = nullptr;
  const Job& job = node->job;
  WriteStatus status;
  uint64_t file_bytes = 0;
  {
    const Unlocked unlocked(mutex_);
    status = write_job(job, options_.known, file_bytes);
    if (job.done != nullptr) job.done(job.context, job.path, status);
  }
  count(job.path, status, file_bytes);
  queued_bytes_ -= node->charge_bytes;
  ++finished_;
  // Not for every file, for the same reason that there are naps.
  if (finished_ >= flush_target_) ::pthread_cond_broadcast(&progress_);
  if (queued_bytes_ <= options_.max_queued_bytes / 2) ::pthread_cond_broadcast(&room_);

  if (queued_bytes_ + kept_bytes_ + node->memory_bytes <= options_.max_queued_bytes)
    return keep(node);
  const Unlocked unlocked(mutex_);
  std::free(node);
}

void Writer::nap() {
  const timespec end = after_milliseconds(kNapMilliseconds);
  napping_ = true;
  while (waiting_ == 0 && !stopping_ &&
         ::pthread_cond_timedwait(&work_, &mutex_, &end) != ETIMEDOUT) {
  }
  napping_ = false;
}

// The parent's thread does not exist here, and what it was writing is the parent's affair; so are
// the callbacks of what was queued. Its memory is kept: nothing is freed inside fork(). Conditions
// remember waiters that this process has not.
void Writer::start_over_in_child() {
  make_condition(work_);
  make_condition(room_);
  make_condition(progress_);
  thread_runs_ = thread_left_ = stopping_ = napping_ = false;
  waiting_ = 0;
  flush_target_ = 0;
  while (first_ != nullptr) {
    Node* next = first_->next;
    keep(first_);
    first_ = next;
  }
  last_ = nullptr;
  queued_bytes_ = 0;
  next_turn_ = turn_ = 0;
  enqueued_ = finished_ = 0;
  counters_ = {};
}

}  // namespace ait::record
