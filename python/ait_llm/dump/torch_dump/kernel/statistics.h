// What the host and the kernel of statistics.cu tell each other. Read by the C++ compiler of the
// extension and, put before statistics.cu, by NVRTC, which has no headers: built-in types only.
#pragma once

namespace ait::fused {

constexpr unsigned kThreads = 256;       // of a block
constexpr unsigned kMaxBlocks = 528;     // of a tensor: four for each multiprocessor of an H200
constexpr unsigned kBlockBytes = 16384;  // of a tensor that a block reads at least
constexpr unsigned kMaxItems = 8;        // tensors of a launch
constexpr unsigned kMaxDims = 5;         // of a tensor with gaps, once dimensions have been joined

enum Type : unsigned {
  kBool,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kFloat8E4M3FN,
  kFloat8E5M2,
  kFloat8E4M3FNUZ,
  kFloat8E5M2FNUZ,
  kFloat8E8M0FNU,
};

// Of one tensor. `done` is written last, and is not 0 then.
struct Result {
  double maximum, minimum, mean, l2_norm;
  unsigned long long nan, inf, elements, done;
};

// What one block has found: over finite elements, but for the counts.
struct Partial {
  double sum, squares;              // of elements of ordinary size
  double large_sum, large_squares;  // of those above 2^400, times 2^-600
  double small_squares;             // of those below 2^-400, times 2^600
  double maximum, minimum;
  unsigned nan, positive_inf, negative_inf, unused;
};

struct Dim {
  long long size, stride;  // the stride in elements
};

struct Item {
  const void* data;
  unsigned long long elements;
  Result* result;
  Partial* partials;  // one for each block; not used by a single block
  unsigned* counter;  // 0 between launches
  unsigned blocks;
  Type type;
  unsigned dims;  // 0: the elements lie side by side
  unsigned unused;
  Dim dim[kMaxDims];  // the one with the smallest stride first
};

struct Batch {
  Item item[kMaxItems];
  unsigned first[kMaxItems + 1];  // of each item its first block
  unsigned count;
};

}  // namespace ait::fused
