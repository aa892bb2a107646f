// Stands in for libcuda on a machine without a GPU: runs our kernel's very text on the CPU, when it is launched. A capture
// keeps the launches, a replay runs them.
//
//   c++ -std=c++20 -O1 -shared -fPIC -I python/ait_llm/dump/torch_dump -o libfake.so tests/python/fused_on_host.cpp
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include "kernel/statistics.h"

#define AIT_DEVICE inline
#define AIT_APART inline
#define AIT_SHARED static
#define AIT_EACH_THREAD(...)                                           \
  for (unsigned thread = 0; thread < ait::fused::kThreads; ++thread) { \
    __VA_ARGS__                                                        \
  }
#define __global__
#define __launch_bounds__(threads)
#define __grid_constant__

struct Position {
  unsigned x;
};
static Position blockIdx;
static unsigned order_of_blocks =
    1;  // of a launch: every so many, so that the last to end is another one

static void __threadfence() {}
static void __threadfence_system() {}
static unsigned atomicInc(unsigned* counter, unsigned top) {
  const unsigned before = *counter;
  *counter = before >= top ? 0 : before + 1;
  return before;
}

using std::sqrt;
#include "kernel/statistics.cu"

namespace {

using ait::fused::Batch;

struct Node {
  unsigned blocks;
  Batch batch;
};
uint64_t capture = 0;                            // the one under way
std::map<uint64_t, std::vector<Node>> captured;  // by its number
uint64_t launches = 0;

void run(const Node& node) {
  // Any order of blocks must give the same bits.
  unsigned step = order_of_blocks;
  while (std::gcd(step, node.blocks) != 1) ++step;
  for (unsigned i = 0; i < node.blocks; ++i) {
    blockIdx.x = static_cast<unsigned>((uint64_t{i} * step) % node.blocks);
    ait_statistics(node.batch);
  }
}

}  // namespace

extern "C" {

void fake_order(unsigned step) { order_of_blocks = step; }
uint64_t fake_launches() { return launches; }
uint64_t fake_begin_capture() {
  static uint64_t latest = 0;
  return capture = ++latest;
}
void fake_end_capture() { capture = 0; }
void fake_replay(uint64_t number) {
  for (const Node& node : captured[number]) run(node);
}

int cuInit(unsigned) { return 0; }
int cuDeviceGet(int* device, int index) { return *device = index, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return *context = reinterpret_cast<void*>(intptr_t{device} + 1), 0;
}
static thread_local void* current_context = nullptr;
int cuCtxGetCurrent(void** context) { return *context = current_context, 0; }
int cuCtxSetCurrent(void* context) { return current_context = context, 0; }
int cuModuleLoadData(void** module, const void*) { return *module = reinterpret_cast<void*>(1), 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = reinterpret_cast<void*>(1);
  return std::strcmp(name, "ait_statistics") == 0 ? 0 : 500;
}
int cuLaunchKernel(void*, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void*, void** parameters, void**) {
  ++launches;
  if (threads != ait::fused::kThreads || current_context == nullptr) return 1;
  const Node node{blocks, *static_cast<Batch*>(parameters[0])};
  if (capture != 0)
    captured[capture].push_back(node);
  else
    run(node);
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return *memory = std::malloc(bytes), 0;
}
int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  *memory = reinterpret_cast<unsigned long long>(std::malloc(bytes));
  std::memset(reinterpret_cast<void*>(*memory), 0xa5, bytes);
  return 0;
}
int cuMemsetD8_v2(unsigned long long memory, unsigned char byte, size_t bytes) {
  return std::memset(reinterpret_cast<void*>(memory), byte, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void*) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuEventCreate(void** event, unsigned) { return *event = reinterpret_cast<void*>(1), 0; }
int cuEventRecord(void*, void*) { return 0; }
int cuEventSynchronize(void*) { return 0; }
int cuEventDestroy_v2(void*) { return 0; }
int cuStreamGetCaptureInfo(void*, int* status, uint64_t* id) {
  *status = capture != 0;
  return *id = capture, 0;
}
int cuThreadExchangeStreamCaptureMode(int*) { return 0; }
int cuGetErrorString(int, const char** text) { return *text = "a fault of the fake", 0; }
}
