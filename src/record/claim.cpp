#include "record/claim.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "record/atomic_file.h"
#include "record/dump_names.h"

namespace ait::record {
namespace {

// Nobody runs so often into one folder in which every process has the same pid.
constexpr uint64_t kMostNames = 100'000;

// Field 22 of /proc/self/stat, when the process began; it stays when its program is replaced.
unsigned long long start_ticks() {
  const int fd = open_regular_file("/proc/self/stat", O_RDONLY);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0) return 0;
  text[got] = '\0';
  const char* at = std::strrchr(text, ')');  // behind the program's name, which is field 2
  for (int field = 2; field < 22 && at != nullptr; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

// "{run}:{start}:{namespace of its pid}"
void describe_process(const char* run, char (&text)[512]) {
  char space[64] = "";
  const ssize_t got = ::readlink("/proc/self/ns/pid", space, sizeof space - 1);
  if (got > 0) space[got] = '\0';
  std::snprintf(text, sizeof text, "%.255s:%llu:%s", run, start_ticks(), space);
}

bool is_there(const char* path) {
  struct statx status{};  // stat's symbol asks for glibc 2.33
  return ::statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &status) == 0;
}

bool ends_with(const char* text, const char* ending) {
  const size_t length = std::strlen(text);
  const size_t ending_length = std::strlen(ending);
  return length >= ending_length && std::strcmp(text + length - ending_length, ending) == 0;
}

// {device}_{name} in one of the folders whose devices are not known yet.
bool has_device_folder(const char* parent, const char* name) {
  DIR* folder = ::opendir(parent);
  if (folder == nullptr) return false;
  char ending[sizeof(ProcessName::text) + 1];
  std::snprintf(ending, sizeof ending, "_%s", name);
  bool found = false;
  for (const dirent* entry = ::readdir(folder); entry != nullptr && !found;
       entry = ::readdir(folder))
    // 0_4711, but not 0_1_4711, which is number 4711 of a process 1.
    found = ends_with(entry->d_name, ending) &&
            std::strchr(entry->d_name, '_') ==
                entry->d_name + std::strlen(entry->d_name) - std::strlen(ending);
  ::closedir(folder);
  return found;
}

bool has_folders(const char* dump, const char* name) {
  char path[PATH_MAX];
  for (const char* kind : {kTensorsFolder, kTilingFolder}) {
    std::snprintf(path, sizeof path, "%s/%s", dump, kind);
    if (has_device_folder(path, name)) return true;
  }
  for (const char* kind :
       {kOperationTablesFolder, kKernelTablesFolder, kLayerFolder, kModelFolder}) {
    std::snprintf(path, sizeof path, "%s/%s/%s", dump, kind, name);
    if (is_there(path)) return true;
  }
  return false;
}

}  // namespace

ProcessName process_name(uint64_t pid, uint64_t number) {
  ProcessName name;
  name.number = number;
  const auto process = static_cast<unsigned long long>(pid);
  if (number == 0)
    std::snprintf(name.text, sizeof name.text, "%llu", process);
  else
    std::snprintf(name.text, sizeof name.text, "%llu_%llu", process,
                  static_cast<unsigned long long>(number));
  return name;
}

ProcessName claim_name(const char* dump, uint64_t pid, const char* run) {
  char owner[512];
  describe_process(run, owner);
  for (uint64_t number = 0; number < kMostNames; ++number) {
    const ProcessName name = process_name(pid, number);
    char claim[PATH_MAX];
    const int length =
        std::snprintf(claim, sizeof claim, "%s/%s/%s", dump, kClaimsFolder, name.text);
    if (length < 0 || static_cast<size_t>(length) >= sizeof claim) return name;
    if (number == 0) static_cast<void>(create_parents(claim));  // where it fails, so does the claim
    const bool claimed = ::symlink(owner, claim) == 0;
    if (!claimed && errno == EEXIST) {
      char other[sizeof owner];
      const ssize_t got = ::readlink(claim, other, sizeof other - 1);
      if (got < 0) continue;
      other[got] = '\0';
      if (std::strcmp(owner, other) == 0) return name;  // before its program was replaced
      continue;
    }
    if (!has_folders(dump, name.text)) return name;
    if (claimed) ::unlink(claim);
  }
  return process_name(pid, 0);
}

}  // namespace ait::record
