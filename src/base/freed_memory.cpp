#include "base/freed_memory.h"

#include <malloc.h>

namespace ait {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestKept = 32 << 20;  // the most that is allowed
  constexpr int kKept = 512 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargestKept);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

}  // namespace ait
