#include "atb/communicator.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <vector>

#include "kernels/simd.h"

namespace atb {
namespace {

// What one rank can show the others at a time; longer tensors go in pieces.
constexpr size_t kSlotBytes = size_t{1} << 20;
// Looks before sleeping: peers usually arrive within microseconds.
constexpr int kSpins = 2000;
constexpr long kNapNanoseconds = 50'000'000;

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec nap{0, kNapNanoseconds};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, seen, &nap, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

float reduced(Communicator::Reduction reduction, float sum, float value) {
  switch (reduction) {
    case Communicator::Reduction::kMax:
      return std::max(sum, value);
    case Communicator::Reduction::kMin:
      return std::min(sum, value);
    case Communicator::Reduction::kProd:
      return sum * value;
    case Communicator::Reduction::kSum:
      break;
  }
  return sum + value;
}

}  // namespace

struct Communicator::Header {
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint32_t> phase{0};
  std::atomic<uint32_t> failed{0};
};

Communicator::Communicator(void* memory, size_t ranks) : memory_(memory), ranks_(ranks) {
  new (memory_) Header;
}

std::unique_ptr<Communicator> Communicator::create(size_t ranks) {
  const size_t bytes = (ranks + 1) * kSlotBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<Communicator>(new Communicator(memory, ranks));
}

Communicator::~Communicator() { munmap(memory_, (ranks_ + 1) * kSlotBytes); }

// The first slot belongs to the header.
uint8_t* Communicator::slot(size_t rank) const {
  return static_cast<uint8_t*>(memory_) + (rank + 1) * kSlotBytes;
}

bool Communicator::fail() {
  auto& header = *static_cast<Header*>(memory_);
  const bool first = header.failed.exchange(1) == 0;
  futex_wake_all(header.phase);
  return first;
}

Status Communicator::barrier() {
  auto& header = *static_cast<Header*>(memory_);
  const uint32_t phase = header.phase.load();
  if (header.arrived.fetch_add(1) + 1 == ranks_) {
    header.arrived.store(0);
    header.phase.store(phase + 1);
    futex_wake_all(header.phase);
    return {};
  }
  for (int i = 0; i < kSpins && header.phase.load() == phase; ++i) pause();
  while (header.phase.load() == phase) {
    if (header.failed.load() != 0 || (peers_live_ && !peers_live_()))
      return {ErrorType::kRtFail, "another rank has stopped"};
    futex_wait(header.phase, phase);
  }
  return {};
}

Status Communicator::all_reduce(const Tensor& x, const Tensor& out, Reduction reduction) {
  const DataType dtype = x.desc.dtype;
  const size_t bytes = element_bytes(dtype);
  const size_t piece = kSlotBytes / bytes;
  const auto count = static_cast<size_t>(x.desc.dims.count());
  std::vector<float> total, other;
  for (size_t first = 0; first < count; first += piece) {
    const size_t here = std::min(piece, count - first);
    std::memcpy(slot(rank_), x.as<uint8_t>() + first * bytes, here * bytes);
    if (auto status = barrier(); !status.ok()) return status;
    total.resize(here);
    other.resize(here);
    kernels::widen(dtype, slot(0), here, total.data());
    for (size_t rank = 1; rank < ranks_; ++rank) {
      kernels::widen(dtype, slot(rank), here, other.data());
      for (size_t i = 0; i < here; ++i) total[i] = reduced(reduction, total[i], other[i]);
    }
    kernels::narrow(total.data(), here, dtype, out.as<uint8_t>() + first * bytes);
    // Nobody writes its slot again before all have read it.
    if (auto status = barrier(); !status.ok()) return status;
  }
  return {};
}

Status Communicator::all_gather(const Tensor& x, const Tensor& out) {
  const uint64_t bytes = x.desc.bytes();
  for (uint64_t first = 0; first < bytes; first += kSlotBytes) {
    const uint64_t here = std::min<uint64_t>(kSlotBytes, bytes - first);
    std::memcpy(slot(rank_), x.as<uint8_t>() + first, here);
    if (auto status = barrier(); !status.ok()) return status;
    for (size_t rank = 0; rank < ranks_; ++rank)
      std::memcpy(out.as<uint8_t>() + rank * bytes + first, slot(rank), here);
    if (auto status = barrier(); !status.ok()) return status;
  }
  return {};
}

}  // namespace atb
