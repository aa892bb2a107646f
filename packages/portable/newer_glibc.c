// What g++ 12's own libraries, built with glibc 2.36, ask of a glibc newer than 2.28. Linked into every portable file,
// where it is hidden from others.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// glibc 2.32, <sys/single_threaded.h>. Never single: counters of references are then always atomic.
char __libc_single_threaded = 0;

// glibc 2.36. Only std::random_device asks.
uint32_t arc4random(void) {
  uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}

// glibc 2.30. std::condition_variable waits for a time of the steady clock, and looks at that clock again when it wakes;
// so it may wake early, as when somebody sets the clock of the day.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  struct timespec now, today;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &today) != 0) abort();
  today.tv_sec += until->tv_sec - now.tv_sec;
  today.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (today.tv_nsec < 0) {
    today.tv_sec -= 1;
    today.tv_nsec += 1000000000;
  } else if (today.tv_nsec >= 1000000000) {
    today.tv_sec += 1;
    today.tv_nsec -= 1000000000;
  }
  return pthread_cond_timedwait(condition, mutex, &today);
}

struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  const ElfW(Phdr)* frames = NULL;
  int inside = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = part;
    if (part->p_type == PT_LOAD && search->address >= start &&
        search->address - start < part->p_memsz) {
      inside = 1;
      search->found->dlfo_map_start = (void*)start;
      search->found->dlfo_map_end = (void*)(start + part->p_memsz);
    }
  }
  if (!inside) return 0;
  if (frames == NULL) return -1;
  search->found->dlfo_flags = 0;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = (void*)(object->dlpi_addr + frames->p_vaddr);
  return 1;
}

// glibc 2.35, <dlfcn.h>: where an exception that passes an address is looked up. The unwinder takes "not found" for the
// end of the stack, so this has to answer.
int _dl_find_object(void* address, struct dl_find_object* result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}
