#include "record/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "record/atomic_file.h"
#include "record/dump_names.h"

namespace ait::record {
namespace {

// Of one pid within one run: programs that replace themselves do so a few times.
constexpr int kNameAttempts = 10'000;

static_assert(sizeof(Ledger) <= 4096,
              "a ledger is one page, so that it is one reservation on disk");

// The path that was made, and how many of this pid were there before.
int create_file(const char* folder, uint64_t pid, char (&path)[PATH_MAX], uint64_t& incarnation) {
  for (int n = 0; n < kNameAttempts; ++n) {
    const int length = std::snprintf(path, sizeof path, "%s/%llu.%d%s", folder,
                                     static_cast<unsigned long long>(pid), n, kLedgerSuffix);
    if (length < 0 || static_cast<size_t>(length) >= sizeof path) return -1;
    if (n == 0 && !create_parents(path).ok()) return -1;
    const int fd = open_regular_file(path, O_RDWR | O_CREAT | O_EXCL);
    incarnation = static_cast<uint64_t>(n);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// A name takes no room: it says at least that the process was there, and what it lacked.
void leave_word(const char* path, int error) {
  char word[PATH_MAX];
  const auto stem = static_cast<int>(std::strlen(path) - std::strlen(kLedgerSuffix));
  const int length =
      std::snprintf(word, sizeof word, "%.*s.%d%s", stem, path, error, kNoLedgerSuffix);
  if (length < 0 || static_cast<size_t>(length) >= sizeof word || ::rename(path, word) != 0)
    ::unlink(path);
}

void* map_shared(const char* folder, uint64_t pid, uint64_t& incarnation) {
  char path[PATH_MAX];
  const int fd = create_file(folder, pid, path, incarnation);
  if (fd < 0) return MAP_FAILED;
  // Reserved and not only set: a page that the disk has no room for would kill the host when it is
  // first touched.
  void* memory = MAP_FAILED;
  int error = ::posix_fallocate(fd, 0, sizeof(Ledger));
  if (error == 0) {
    memory = ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = errno;
  }
  ::close(fd);
  if (memory == MAP_FAILED) leave_word(path, error);
  return memory;
}

}  // namespace

Ledger* open_ledger(const char* folder, uint64_t pid) {
  static Ledger last_resort;
  uint64_t incarnation = 0;
  void* memory = folder == nullptr ? MAP_FAILED : map_shared(folder, pid, incarnation);
  const bool shared = memory != MAP_FAILED;
  if (!shared)
    memory =
        ::mmap(nullptr, sizeof(Ledger), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* ledger = memory == MAP_FAILED ? &last_resort : static_cast<Ledger*>(memory);
  ledger->pid = pid;
  ledger->incarnation = incarnation;
  ledger->shared = shared ? 1 : 0;
  ledger->place = read_place();
  __atomic_store_n(&ledger->magic, Ledger::kMagic, __ATOMIC_RELEASE);
  return ledger;
}

bool note_failure(Ledger& ledger, int error_number, const char* step, const char* path) {
  if (__atomic_exchange_n(&ledger.failure_claimed, 1, __ATOMIC_RELAXED) != 0) return false;
  std::snprintf(ledger.failure_step, sizeof ledger.failure_step, "%s", step);
  std::snprintf(ledger.failure_path, sizeof ledger.failure_path, "%s", path);
  __atomic_store_n(&ledger.failure_number, static_cast<uint64_t>(error_number), __ATOMIC_RELEASE);
  return true;
}

bool read_ledger(const char* path, Ledger& ledger) {
  const int fd = open_regular_file(path, O_RDONLY);
  if (fd < 0) return false;
  const ssize_t got = ::pread(fd, &ledger, sizeof ledger, 0);
  ::close(fd);
  if (got != static_cast<ssize_t>(sizeof ledger) || ledger.magic != Ledger::kMagic) return false;
  ledger.failure_step[sizeof ledger.failure_step - 1] = '\0';
  ledger.failure_path[sizeof ledger.failure_path - 1] = '\0';
  ledger.place.host[sizeof ledger.place.host - 1] = '\0';
  return true;
}

}  // namespace ait::record
