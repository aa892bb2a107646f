#include "record/writer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../launch/scratch_folder.h"
#include "record/file_image.h"
#include "record/npy_encoder.h"
#include "record/torch_zip_encoder.h"

namespace ait::record {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;  // it forbids threads after a fork
#else
constexpr bool kThreadSanitizer = false;
#endif

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A door that callbacks wait at, so that a test decides when the writer's thread goes on.
class Gate {
 public:
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_ > 0; });
  }
  static void done(void* gate, const char*, WriteStatus) { static_cast<Gate*>(gate)->pass(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

class WriterTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static Job text_job(const std::string& path, std::string_view text) {
    Job job;
    job.path = path.c_str();
    job.encoding = Encoding::kBytes;
    job.image = {ElementType::kUInt8, nullptr, 0, text.data(), text.size()};
    return job;
  }
  static void submit(Writer& writer, const std::string& path, const std::string& text) {
    writer.submit(text_job(path, text));
  }

  size_t files() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      count += entry.is_regular_file();
    return count;
  }

  const ScratchFolder scratch_;
  const fs::path folder_{scratch_.path()};
};

TEST_F(WriterTest, WritesTheSameFilesAsTheEncoders) {
  const std::vector<int64_t> dims = {2, 3};
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const TensorImage image = {ElementType::kFloat32, dims.data(), 2, values.data(), 24};
  const auto direct = [&](const char* name, const std::function<EncodeResult(FileImage&)>& encode) {
    FileImage file;
    EXPECT_EQ(encode(file), EncodeResult::kOk);
    EXPECT_TRUE(file.write(path(name).c_str()).ok());
    return read(path(name));
  };
  const std::pair<Encoding, std::string> expected[] = {
      {Encoding::kAtbBin, direct("0", [&](FileImage& f) { return encode_atb_bin(image, f, 29); })},
      {Encoding::kAtbBinDescription,
       direct("1", [&](FileImage& f) { return encode_atb_bin_description(image, f, 29); })},
      {Encoding::kNpy, direct("2", [&](FileImage& f) { return encode_npy(image, f); })},
      {Encoding::kTorch, direct("3", [&](FileImage& f) { return encode_torch(image, f); })},
      {Encoding::kBytes, std::string(reinterpret_cast<const char*>(values.data()), 24)},
  };
  Writer writer;
  uint64_t bytes = 0;
  for (const auto& [encoding, content] : expected) {
    const std::string at = path("new/" + std::to_string(static_cast<int>(encoding)));
    Job job;
    job.path = at.c_str();
    job.encoding = encoding;
    job.atb_format = 29;
    job.image = image;
    writer.submit(job);
    writer.flush();
    EXPECT_EQ(read(at), content);
    bytes += content.size();
  }
  EXPECT_EQ(writer.counters().written, 5u);
  EXPECT_EQ(writer.counters().bytes_written, bytes);
}

TEST_F(WriterTest, TakesACopyOfEverythingBeforeSubmitReturns) {
  Gate gate;
  Writer writer;
  const std::string first = path("first");
  Job blocking = text_job(first, "x");
  blocking.done = &Gate::done;
  blocking.context = &gate;
  writer.submit(blocking);
  gate.wait_for_arrival();

  std::string at = path("x.npy");
  std::vector<int64_t> dims = {4};
  std::vector<uint8_t> values = {1, 2, 3, 4};
  Job job;
  job.path = at.c_str();
  job.encoding = Encoding::kNpy;
  job.image = {ElementType::kUInt8, dims.data(), 1, values.data(), 4};
  writer.submit(job);
  at.assign(at.size(), '?');
  dims = {-1};
  values.assign(4, 9);
  gate.open();
  writer.flush();
  const std::string content = read(path("x.npy"));
  ASSERT_GE(content.size(), 4u);
  EXPECT_EQ(content.substr(content.size() - 4), "\x01\x02\x03\x04");
}

TEST_F(WriterTest, BorrowedBytesAreReadFromWhereTheyAre) {
  Gate gate;
  Writer writer;
  const std::string first = path("first");
  const std::string at = path("x");
  Job blocking = text_job(first, "x");
  blocking.done = &Gate::done;
  blocking.context = &gate;
  writer.submit(blocking);
  gate.wait_for_arrival();
  std::string text = "before";
  Job job = text_job(at, text);
  job.borrowed = true;
  writer.submit(job);
  text.assign("after!");  // not allowed, and shows that nothing was copied
  gate.open();
  writer.flush();
  EXPECT_EQ(read(at), "after!");
}

TEST_F(WriterTest, FillPutsTheBytesIntoTheQueueItself) {
  Writer writer;
  const std::string at = path("x");
  const std::string text(100, 'f');
  Job job = text_job(at, text);
  job.image.data = nullptr;
  job.fill = [](void* context, void* to) {
    std::memset(to, static_cast<const char*>(context)[0], 100);
    return 0;
  };
  job.context = const_cast<char*>(text.data());
  writer.submit(job);
  writer.flush();
  EXPECT_EQ(read(at), text);
}

TEST_F(WriterTest, AJobWhoseBytesCannotBeHadFails) {
  Writer writer;
  const std::string at = path("x");
  Job job = text_job(at, "text");
  job.fill = [](void*, void*) { return ENODEV; };
  writer.submit(job);
  EXPECT_EQ(writer.counters().failed, 1u);
  EXPECT_EQ(writer.counters().first_failure.error_number, ENODEV);
  EXPECT_EQ(writer.counters().first_failed_path, at);
  EXPECT_FALSE(fs::exists(at));
}

struct Seen {
  int calls = 0;
  int error_number = -1;
  bool file_is_there = false;
  std::string path;

  static void done(void* seen, const char* path, WriteStatus status) {
    auto& self = *static_cast<Seen*>(seen);
    ++self.calls;
    self.error_number = status.error_number;
    self.file_is_there = fs::exists(path);
    self.path = path;
  }
};

TEST_F(WriterTest, SaysOnceWhenTheFileIsThere) {
  Seen seen;
  const std::string at = path("a/b");
  Writer writer;
  Job job = text_job(at, "text");
  job.done = &Seen::done;
  job.context = &seen;
  writer.submit(job);
  writer.flush();
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.error_number, 0);
  EXPECT_TRUE(seen.file_is_there);
  EXPECT_EQ(seen.path, at);
}

TEST_F(WriterTest, SaysOnceWhenTheFileCannotBe) {
  std::ofstream(folder_ / "file") << "in the way";
  Seen seen;
  const std::string at = path("file/x");
  Writer writer;
  Job job = text_job(at, "text");
  job.done = &Seen::done;
  job.context = &seen;
  writer.submit(job);
  writer.flush();
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.error_number, ENOTDIR);
  EXPECT_FALSE(seen.file_is_there);
}

TEST_F(WriterTest, OfTwoJobsForOnePathTheLaterWins) {
  Writer writer(WriterOptions{.max_queued_bytes = 4096});
  for (int i = 0; i < 200; ++i) {
    // Some go through the queue and some, too large for it, past it.
    const std::string text = std::to_string(i) + std::string(i % 7 == 3 ? 10000 : 10, '.');
    submit(writer, path("x"), text);
    if (i % 10 != 3) continue;
    writer.flush();
    EXPECT_EQ(read(path("x")), text);
  }
  writer.flush();
  EXPECT_EQ(read(path("x")).substr(0, 4), "199.");
}

TEST_F(WriterTest, WaitsWhileTheQueueIsFull) {
  constexpr size_t kBytes = 10'000;
  Gate gate;
  std::atomic<int> returned{0};
  Writer writer(WriterOptions{.max_queued_bytes = 3 * kBytes + kBytes / 2});
  std::thread submitter([&] {
    for (int i = 0; i < 20; ++i) {
      const std::string at = path(std::to_string(i));
      const std::string text(kBytes, 'x');
      Job job = text_job(at, text);
      job.done = &Gate::done;
      job.context = &gate;
      writer.submit(job);
      ++returned;
    }
  });
  gate.wait_for_arrival();
  while (returned < 3) std::this_thread::yield();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(returned, 3);  // the one being written counts, too
  gate.open();
  submitter.join();
  writer.flush();
  EXPECT_EQ(files(), 20u);
}

TEST_F(WriterTest, ManyEmptyTensorsFillTheQueueToo) {
  Gate gate;
  std::atomic<int> returned{0};
  Writer writer(WriterOptions{.max_queued_bytes = 4096});
  std::thread submitter([&] {
    for (int i = 0; i < 1000; ++i) {
      const std::string at = path("x");
      Job job = text_job(at, "");
      job.done = &Gate::done;
      job.context = &gate;
      writer.submit(job);
      ++returned;
    }
  });
  gate.wait_for_arrival();
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(returned, 50);
  gate.open();
  submitter.join();
  writer.flush();
  EXPECT_EQ(writer.counters().written, 1000u);
}

TEST_F(WriterTest, ATensorLargerThanTheQueueIsThereWhenSubmitReturns) {
  Writer writer(WriterOptions{.max_queued_bytes = 1000});
  const std::string text(100'000, 'x');
  submit(writer, path("x"), text);
  EXPECT_EQ(read(path("x")), text);
}

TEST_F(WriterTest, AFilledTensorLargerThanTheQueueIsTakenWhenThatIsEmpty) {
  Writer writer(WriterOptions{.max_queued_bytes = 1000});
  const std::string text(100'000, 'x');
  for (int i = 0; i < 5; ++i) {
    submit(writer, path("small" + std::to_string(i)), "x");
    const std::string at = path(std::to_string(i));
    Job job = text_job(at, text);
    job.fill = [](void*, void* to) {
      std::memset(to, 'x', 100'000);
      return 0;
    };
    writer.submit(job);
  }
  writer.flush();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(read(path(std::to_string(i))), text);
}

TEST_F(WriterTest, ManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kFiles = 100;
  for (const size_t bound : {size_t{1}, size_t{2000}, size_t{1} << 20}) {
    const std::string place = "bound" + std::to_string(bound) + "/";
    const auto text = [](int t, int i) {
      return std::to_string(t) + "/" + std::to_string(i) +
             std::string(static_cast<size_t>(i * 37 % 1500), 'x');
    };
    Writer writer(WriterOptions{.max_queued_bytes = bound});
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kFiles; ++i) {
          submit(writer, path(place + std::to_string(t) + "_" + std::to_string(i)), text(t, i));
          if (i % 40 == 0) writer.flush();
        }
      });
    for (std::thread& thread : threads) thread.join();
    writer.flush();
    EXPECT_EQ(writer.counters().submitted, static_cast<uint64_t>(kThreads * kFiles));
    EXPECT_EQ(writer.counters().written, static_cast<uint64_t>(kThreads * kFiles));
    EXPECT_EQ(writer.counters().failed, 0u);
    for (int t = 0; t < kThreads; ++t)
      for (int i = 0; i < kFiles; ++i)
        ASSERT_EQ(read(path(place + std::to_string(t) + "_" + std::to_string(i))), text(t, i));
  }
}

TEST_F(WriterTest, FlushWaitsForWhatItsOwnThreadSubmittedWhileOthersGoOn) {
  Writer writer(WriterOptions{.max_queued_bytes = 5000});
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (int i = 0; !stop; ++i) submit(writer, path("other" + std::to_string(i)), "y");
  });
  for (int i = 0; i < 100; ++i) {
    submit(writer, path("mine" + std::to_string(i)), "x");
    writer.flush();
    EXPECT_TRUE(fs::exists(path("mine" + std::to_string(i))));
  }
  stop = true;
  other.join();
}

TEST_F(WriterTest, AFailingDiskStopsNothingAndTheFirstFailureIsKept) {
  std::ofstream(folder_ / "file") << "in the way";
  Writer writer(WriterOptions{.max_queued_bytes = 1000});
  submit(writer, path("good"), "x");
  for (int i = 0; i < 100; ++i) {
    submit(writer, path("file/" + std::to_string(i)), std::string(i % 2 == 0 ? 10 : 5000, 'x'));
    submit(writer, path("good" + std::to_string(i)), "x");
  }
  writer.flush();
  const WriterCounters counters = writer.counters();
  EXPECT_EQ(counters.submitted, 201u);
  EXPECT_EQ(counters.written, 101u);
  EXPECT_EQ(counters.failed, 100u);
  EXPECT_EQ(counters.first_failure.error_number, ENOTDIR);
  EXPECT_EQ(counters.first_failed_path, path("file/0"));
}

TEST_F(WriterTest, WhatTheFormatCannotHoldFailsWithAReason) {
  const int64_t dims[] = {2};
  const uint16_t values[] = {1, 2};
  const std::string at = path("x.npy");
  Writer writer;
  Job job;
  job.path = at.c_str();
  job.encoding = Encoding::kNpy;
  job.image = {ElementType::kBFloat16, dims, 1, values, 4};
  writer.submit(job);
  job.image = {ElementType::kInt64, dims, 1, values, 4};  // 4 bytes are no two int64
  writer.submit(job);
  writer.flush();
  EXPECT_EQ(writer.counters().failed, 2u);
  EXPECT_EQ(writer.counters().first_failure.error_number, ENOTSUP);
  EXPECT_EQ(files(), 0u);
}

TEST_F(WriterTest, TheDestructorWritesWhatIsQueued) {
  {
    Writer writer;
    for (int i = 0; i < 100; ++i) submit(writer, path(std::to_string(i)), "x");
  }
  EXPECT_EQ(files(), 100u);
}

struct Idle {
  std::atomic<int> calls{0};
  int again_after_ms = -1;
  int again_calls = 0;

  static int call(void* idle) {
    auto& self = *static_cast<Idle*>(idle);
    return ++self.calls <= self.again_calls ? self.again_after_ms : -1;
  }
};

TEST_F(WriterTest, CallsIdleWhenItHasNothingLeftToDo) {
  Idle idle;
  Writer writer(WriterOptions{.idle = &Idle::call, .idle_context = &idle});
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(idle.calls, 0);
  submit(writer, path("x"), "x");
  while (idle.calls < 1) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(idle.calls, 1);
}

TEST_F(WriterTest, CallsIdleAgainWhenAskedTo) {
  Idle idle;
  idle.again_after_ms = 1;
  idle.again_calls = 5;
  Writer writer(WriterOptions{.idle = &Idle::call, .idle_context = &idle});
  submit(writer, path("x"), "x");
  while (idle.calls < 6) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(idle.calls, 6);
}

TEST_F(WriterTest, DoesNotWaitForIdleTimeWhenThereIsWork) {
  Idle idle;
  idle.again_after_ms = 3'600'000;
  idle.again_calls = 1'000'000;
  Writer writer(WriterOptions{.idle = &Idle::call, .idle_context = &idle});
  for (int i = 0; i < 20; ++i) {
    submit(writer, path(std::to_string(i)), "x");
    writer.flush();
  }
  EXPECT_EQ(files(), 20u);
}

TEST_F(WriterTest, ItsThreadTakesNoneOfTheHostsSignals) {
  Writer writer;
  submit(writer, path("x"), "x");
  writer.flush();
  bool found = false;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    if (read(task.path() / "comm") != "ait-writer\n") continue;
    found = true;
    const std::string status = read(task.path() / "status");
    const uint64_t blocked = std::stoull(status.substr(status.find("SigBlk:") + 7), nullptr, 16);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD})
      EXPECT_TRUE((blocked >> (signal - 1)) & 1) << signal;
  }
  EXPECT_TRUE(found);
}

// Runs `body` in a forked child; it returns whether all was well.
bool in_child(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(WriterTest, AForkedChildStartsWithAnEmptyQueueAndTheParentKeepsItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer forbids threads after a fork";
  Gate gate;
  Writer writer;
  for (int i = 0; i < 5; ++i) {
    const std::string at = path("parent" + std::to_string(i));
    Job job = text_job(at, "parent");
    job.done = &Gate::done;
    job.context = &gate;
    writer.submit(job);
  }
  gate.wait_for_arrival();
  EXPECT_TRUE(in_child([&] {
    bool good = writer.counters().submitted == 0;
    for (int i = 0; i < 10; ++i) submit(writer, path("child" + std::to_string(i)), "child");
    writer.flush();
    good &= writer.counters().written == 10 && read(path("child9")) == "child";
    // Grandchildren alike.
    good &= in_child([&] {
      submit(writer, path("grandchild"), "grandchild");
      writer.flush();
      return read(path("grandchild")) == "grandchild";
    });
    return good && !fs::exists(path("parent1"));
  }));
  gate.open();
  writer.flush();
  EXPECT_EQ(writer.counters().written, 5u);
  EXPECT_EQ(read(path("parent4")), "parent");
}

TEST_F(WriterTest, ForksWhileOthersSubmitDoNoHarm) {
  if (kThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer forbids threads after a fork";
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "libasan's own locks do not survive the fork of a process that allocates in threads";
#endif
  Writer writer(WriterOptions{.max_queued_bytes = 20'000});
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> submitted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; !stop; ++i, ++submitted)
        submit(writer, path(std::to_string(t) + "_" + std::to_string(i % 20)),
               std::string(1000, 'x'));
    });
  for (int i = 0; i < 30; ++i)
    EXPECT_TRUE(in_child([&] {
      submit(writer, path("child" + std::to_string(i)), "child");
      writer.flush();
      return writer.counters().written == 1;
    }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  writer.flush();
  EXPECT_EQ(writer.counters().written, submitted);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(read(path("child" + std::to_string(i))), "child");
}

TEST_F(WriterTest, PutsACallersHeaderBeforeTheBytes) {
  const std::string path = folder_ / "x.bin";
  {
    Writer writer;
    std::string header = "head\n";
    std::string bytes = "body";
    Job job;
    job.path = path.c_str();
    job.encoding = Encoding::kBytes;
    job.header = header.data();
    job.header_bytes = header.size();
    job.image.data = bytes.data();
    job.image.bytes = bytes.size();
    writer.submit(job);
    header.assign(header.size(), '?');  // both were copied
    bytes.assign(bytes.size(), '?');
  }
  EXPECT_EQ(read(path), "head\nbody");
}

// Of the writer's kind, in this process.
size_t writer_threads() {
  size_t found = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task"))
    found += read(task.path() / "comm") == "ait-writer\n" ? 1 : 0;
  return found;
}

TEST_F(WriterTest, ItsThreadLeavesWhenThereIsNothingToDoAndComesBack) {
  Writer writer;
  const auto write = [&](const char* name) {
    const std::string path = folder_ / name;
    Job job;
    job.path = path.c_str();
    job.encoding = Encoding::kBytes;
    job.image.data = "x";
    job.image.bytes = 1;
    writer.submit(job);
    writer.flush();
    return read(path);
  };
  EXPECT_EQ(write("first"), "x");
  EXPECT_EQ(writer_threads(), 1u);
  for (int i = 0; i < 100 && writer_threads() > 0; ++i) std::this_thread::sleep_for(100ms);
  EXPECT_EQ(writer_threads(), 0u);
  EXPECT_EQ(write("second"), "x");
  EXPECT_EQ(writer_threads(), 1u);
}

}  // namespace
}  // namespace ait::record
