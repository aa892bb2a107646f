#include "base/memory.h"

#include <malloc.h>
#include <unistd.h>

namespace ait {

size_t machine_memory_bytes() {
  return static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(::sysconf(_SC_PAGE_SIZE));
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestKept = 32 << 20;  // the most that is allowed
  constexpr int kKept = 512 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargestKept);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

}  // namespace ait
