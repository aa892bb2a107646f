// A mutex held for as long as a block lasts. Not std::lock_guard: what is built on this library
// must not need libstdc++'s shared object.
#pragma once

#include <pthread.h>

namespace ait::record {

class Lock {
 public:
  explicit Lock(pthread_mutex_t& mutex) : mutex_(mutex) { ::pthread_mutex_lock(&mutex_); }
  ~Lock() { ::pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

}  // namespace ait::record
