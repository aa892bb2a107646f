// Statistics of up to kMaxItems tensors in one launch. Each tensor is read once; the results go straight to where the
// host reads them. No sum depends on which block is quicker: the block of a tensor that ends last adds up what the others
// have left, in their order, so that results are the same to the bit in every run.
//
// Inside a block the threads run through the same steps: AIT_EACH_THREAD is one step, and none begins the next before all
// have done it. A host compiler has a loop over the threads instead (tests/python/fused_on_host.cpp), so that this very
// text is tested where there is no GPU.
#ifndef AIT_EACH_THREAD
#define AIT_DEVICE __device__ __forceinline__
#define AIT_APART __device__ __noinline__
#define AIT_SHARED __shared__
#define AIT_ALL_THREADS __syncthreads()
#define AIT_EACH_THREAD(...)               \
  {                                        \
    const unsigned thread = threadIdx.x;   \
    __VA_ARGS__                            \
  }                                        \
  AIT_ALL_THREADS
#endif

namespace ait::fused {

typedef unsigned char Bits8;
typedef unsigned short Bits16;
typedef unsigned int Bits32;
typedef unsigned long long Bits64;

struct alignas(16) Vector {
  Bits32 word[4];
};

constexpr double kLarge = 0x1p400, kSmall = 0x1p-400;
constexpr double kScale = 0x1p600;

// The bits of one type as another; NVRTC has no memcpy.
template <class To, class From>
AIT_DEVICE To reread(From from) {
  static_assert(sizeof(To) == sizeof(From));
  union {
    From before;
    To after;
  } both = {from};
  return both.after;
}
AIT_DEVICE float float_of(Bits32 bits) { return reread<float>(bits); }
AIT_DEVICE double double_of(Bits64 bits) { return reread<double>(bits); }
AIT_DEVICE Bits64 bits_of(double value) { return reread<Bits64>(value); }
AIT_DEVICE Bits32 bits_of(float value) { return reread<Bits32>(value); }
AIT_DEVICE float infinity() { return float_of(0x7f800000u); }

// The sum over what a thread has read. Comparisons of float32 are cheaper than those of float64.
template <class Value>
struct Sums {
  double sum, squares, large_sum, large_squares, small_squares;
  Value maximum, minimum;
  Bits32 nan, positive_inf, negative_inf;
};

template <class Value>
AIT_DEVICE void clear(Sums<Value>& sums) {
  sums.sum = sums.squares = sums.large_sum = sums.large_squares = sums.small_squares = 0;
  sums.maximum = -infinity();
  sums.minimum = infinity();
  sums.nan = sums.positive_inf = sums.negative_inf = 0;
}

template <class Value>
AIT_DEVICE void widen_range(Sums<Value>& sums, Value low, Value high) {
  if (high > sums.maximum) sums.maximum = high;
  if (low < sums.minimum) sums.minimum = low;
}

template <class Value>
AIT_DEVICE void count_special(Sums<Value>& sums, bool nan, bool negative) {
  sums.nan += nan;
  sums.positive_inf += !nan && !negative;
  sums.negative_inf += !nan && negative;
}

AIT_DEVICE void add(Sums<float>& sums, float value) {
  const Bits32 bits = bits_of(value), magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return count_special(sums, magnitude > 0x7f800000u, bits >> 31);
  const double wide = value;
  sums.sum += wide;
  sums.squares += wide * wide;  // exact products: a float32 has 24 bits, a float64 53
  widen_range(sums, value, value);
}

// Of float64, squares may be too large or too small for another float64, and sums too large.
AIT_DEVICE void add(Sums<double>& sums, double value) {
  const Bits64 bits = bits_of(value), magnitude = bits & 0x7fffffffffffffffull;
  if (magnitude >= 0x7ff0000000000000ull) return count_special(sums, magnitude > 0x7ff0000000000000ull, bits >> 63);
  const double size = double_of(magnitude);
  if (size > kLarge) {
    const double scaled = value / kScale;
    sums.large_sum += scaled;
    sums.large_squares += scaled * scaled;
  } else {
    sums.sum += value;
    if (size < kSmall) {
      const double scaled = value * kScale;
      sums.small_squares += scaled * scaled;
    } else {
      sums.squares += value * value;
    }
  }
  widen_range(sums, value, value);
}

template <class Value, class Other>
AIT_DEVICE void merge(Sums<Value>& sums, const Other& other) {
  sums.sum += other.sum;
  sums.squares += other.squares;
  sums.large_sum += other.large_sum;
  sums.large_squares += other.large_squares;
  sums.small_squares += other.small_squares;
  widen_range(sums, (Value)other.minimum, (Value)other.maximum);
  sums.nan += other.nan;
  sums.positive_inf += other.positive_inf;
  sums.negative_inf += other.negative_inf;
}

// Element types: how their bits are stored and what they stand for.
template <class Stored, class As>
struct Whole {
  typedef Stored Bits;
  typedef double Value;
  static AIT_DEVICE double value(Bits bits) { return (double)(As)bits; }
};
struct Truth {
  typedef Bits8 Bits;
  typedef double Value;
  static AIT_DEVICE double value(Bits bits) { return bits != 0; }
};
struct Double {
  typedef Bits64 Bits;
  typedef double Value;
  static AIT_DEVICE double value(Bits bits) { return double_of(bits); }
};
struct Float {
  typedef Bits32 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) { return float_of(bits); }
};
struct Brain {
  typedef Bits16 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) { return float_of((Bits32)bits << 16); }
};

// Floats with few bits; `kBias` is subtracted from the stored exponent.
template <int kExponentBits, int kMantissaBits, int kBias>
AIT_DEVICE float narrow_value(Bits32 bits) {
  const Bits32 sign = bits >> (kExponentBits + kMantissaBits) << 31;
  const Bits32 mantissa = bits & ((1u << kMantissaBits) - 1);
  const Bits32 exponent = (bits >> kMantissaBits) & ((1u << kExponentBits) - 1);
  if (exponent != 0) return float_of(sign | (exponent - kBias + 127) << 23 | mantissa << (23 - kMantissaBits));
  const float unit = float_of((Bits32)(1 - kBias - kMantissaBits + 127) << 23);
  return float_of(bits_of((float)mantissa * unit) | sign);
}
struct Half {
  typedef Bits16 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) {
#ifdef __CUDA_ARCH__
    float out;
    asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
    return out;
#else
    const Bits32 sign = (Bits32)(bits >> 15) << 31, mantissa = bits & 0x3ffu;
    if ((bits & 0x7c00u) == 0x7c00u) return float_of(sign | 0x7f800000u | mantissa << 13);
    return narrow_value<5, 10, 15>(bits);
#endif
  }
};
struct E4M3FN {  // no infinity, one NaN of each sign
  typedef Bits8 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) {
    return (bits & 0x7f) == 0x7f ? float_of(0x7fc00000u) : narrow_value<4, 3, 7>(bits);
  }
};
struct E5M2 {
  typedef Bits8 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) {
    if ((bits & 0x7c) == 0x7c) return float_of((Bits32)(bits >> 7) << 31 | 0x7f800000u | (Bits32)(bits & 3) << 21);
    return narrow_value<5, 2, 15>(bits);
  }
};
template <int kExponentBits, int kMantissaBits, int kBias>
struct Finite {  // neither infinities nor a negative zero, in whose place NaN is
  typedef Bits8 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) {
    return bits == 0x80 ? float_of(0x7fc00000u) : narrow_value<kExponentBits, kMantissaBits, kBias>(bits);
  }
};
struct E8M0 {  // powers of two
  typedef Bits8 Bits;
  typedef float Value;
  static AIT_DEVICE float value(Bits bits) {
    if (bits == 0xff) return float_of(0x7fc00000u);
    return float_of(bits == 0 ? 0x00400000u : (Bits32)bits << 23);
  }
};

template <class T>
AIT_DEVICE void add_vector(Sums<typename T::Value>& sums, const Vector& vector) {
  constexpr int kCount = 16 / sizeof(typename T::Bits);
  struct Elements {
    typename T::Bits bits[kCount];
  };
  const Elements elements = reread<Elements>(vector);
#pragma unroll
  for (int i = 0; i < kCount; ++i) add(sums, T::value(elements.bits[i]));
}

// Elements side by side. Where they are aligned, as nearly always, 16 bytes are read at once, and four times so before
// the first is needed; not of the rare types of one byte, which would take long to compile.
template <class T>
AIT_DEVICE void add_plain(Sums<typename T::Value>& sums, const Item& item, Bits64 me, Bits64 stride) {
  const typename T::Bits* data = (const typename T::Bits*)item.data;
  Bits64 done = 0;
  if (((Bits64)item.data & 15) == 0) {
    const Vector* vectors = (const Vector*)item.data;
    constexpr Bits64 kEach = 16 / sizeof(typename T::Bits);
    const Bits64 count = item.elements / kEach;
    Bits64 i = me;
    if constexpr (sizeof(typename T::Bits) > 1)
      for (; i + 3 * stride < count; i += 4 * stride) {
        const Vector one = vectors[i], two = vectors[i + stride];
        const Vector three = vectors[i + 2 * stride], four = vectors[i + 3 * stride];
        add_vector<T>(sums, one);
        add_vector<T>(sums, two);
        add_vector<T>(sums, three);
        add_vector<T>(sums, four);
      }
    for (; i < count; i += stride) add_vector<T>(sums, vectors[i]);
    done = count * kEach;
  }
  for (Bits64 i = done + me; i < item.elements; i += stride) add(sums, T::value(data[i]));
}

// Fewer than 2^32 elements: the host sees to that.
template <class T>
AIT_DEVICE void add_strided(Sums<typename T::Value>& sums, const Item& item, Bits64 me, Bits64 stride) {
  const typename T::Bits* data = (const typename T::Bits*)item.data;
  for (Bits64 i = me; i < item.elements; i += stride) {
    Bits32 rest = (Bits32)i;
    long long offset = 0;
    for (unsigned d = 0; d + 1 < item.dims; ++d) {
      const Bits32 size = (Bits32)item.dim[d].size;
      offset += (long long)(rest % size) * item.dim[d].stride;
      rest /= size;
    }
    offset += (long long)rest * item.dim[item.dims - 1].stride;
    add(sums, T::value(data[offset]));
  }
}

template <class Value>
AIT_DEVICE void store(Partial& to, const Sums<Value>& sums) {
  to.sum = sums.sum;
  to.squares = sums.squares;
  to.large_sum = sums.large_sum;
  to.large_squares = sums.large_squares;
  to.small_squares = sums.small_squares;
  to.maximum = sums.maximum;
  to.minimum = sums.minimum;
  to.nan = sums.nan;
  to.positive_inf = sums.positive_inf;
  to.negative_inf = sums.negative_inf;
}

// As ait's own statistics of a tensor on the CPU: one NaN makes extremes and mean NaN, the norm is that of the finite
// elements.
template <class Value>
AIT_DEVICE void finish(volatile Result& to, const Sums<Value>& sums, Bits64 elements) {
  const double inf = infinity(), nan = double_of(0x7ff8000000000000ull), count = (double)elements;
  double high = sums.positive_inf ? inf : (double)sums.maximum;
  double low = sums.negative_inf ? -inf : (double)sums.minimum;
  double mean = sums.sum / count + sums.large_sum / count * kScale;
  if (sums.positive_inf || sums.negative_inf) mean = !sums.negative_inf ? inf : sums.positive_inf ? nan : -inf;
  if (sums.nan) high = low = mean = nan;
  double norm = sqrt(sums.squares);
  if (sums.large_squares > 0)
    norm = sqrt(sums.large_squares + sums.squares / kScale / kScale) * kScale;
  else if (sums.small_squares > 0)
    norm = sums.squares > 0 ? sqrt(sums.squares + sums.small_squares / kScale / kScale) : sqrt(sums.small_squares) / kScale;
  to.maximum = high;
  to.minimum = low;
  to.mean = mean;
  to.l2_norm = norm;
  to.nan = sums.nan;
  to.inf = (Bits64)sums.positive_inf + sums.negative_inf;
  to.elements = elements;
}

template <class Value>
AIT_DEVICE void join_threads(Sums<Value>* shared) {
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    AIT_EACH_THREAD(if (thread < half) merge(shared[thread], shared[thread + half]););
  }
}

// What the threads of a block have found becomes the tensor's result, or a part of it for the block that ends last.
template <class Value>
AIT_APART void conclude(const Item& item, unsigned block, Sums<Value>* shared, unsigned* is_last) {
  join_threads(shared);
  if (item.blocks > 1) {
    AIT_EACH_THREAD(if (thread == 0) {
      store(item.partials[block], shared[0]);
      __threadfence();
      *is_last = atomicInc(item.counter, item.blocks - 1) == item.blocks - 1;
    });
    if (!*is_last) return;
    AIT_EACH_THREAD({
      __threadfence();
      Sums<Value> sums;
      clear(sums);
      for (unsigned b = thread; b < item.blocks; b += kThreads) {
        const volatile Partial& partial = item.partials[b];
        merge(sums, partial);
      }
      shared[thread] = sums;
    });
    join_threads(shared);
  }
  AIT_EACH_THREAD(if (thread == 0) {
    finish(*item.result, shared[0], item.elements);
    __threadfence_system();
    ((volatile Result*)item.result)->done = 1;
  });
}

template <class T>
AIT_DEVICE void measure(const Item& item, unsigned block, void* memory, unsigned* is_last) {
  typedef Sums<typename T::Value> Found;
  Found* shared = (Found*)memory;
  AIT_EACH_THREAD({
    Found sums;
    clear(sums);
    const Bits64 me = (Bits64)block * kThreads + thread;
    const Bits64 stride = (Bits64)item.blocks * kThreads;
    if (item.dims == 0)
      add_plain<T>(sums, item, me, stride);
    else
      add_strided<T>(sums, item, me, stride);
    shared[thread] = sums;
  });
  conclude(item, block, shared, is_last);
}

}  // namespace ait::fused

extern "C" __global__ void __launch_bounds__(ait::fused::kThreads) ait_statistics(const __grid_constant__ ait::fused::Batch batch) {
  using namespace ait::fused;
  AIT_SHARED Sums<double> memory[kThreads];
  AIT_SHARED unsigned is_last;
  unsigned k = 0;
  while (k + 1 < batch.count && blockIdx.x >= batch.first[k + 1]) ++k;
  const Item& item = batch.item[k];
  const unsigned block = blockIdx.x - batch.first[k];
  switch (item.type) {
    case kBool: return measure<Truth>(item, block, memory, &is_last);
    case kInt8: return measure<Whole<Bits8, signed char>>(item, block, memory, &is_last);
    case kUInt8: return measure<Whole<Bits8, Bits8>>(item, block, memory, &is_last);
    case kInt16: return measure<Whole<Bits16, short>>(item, block, memory, &is_last);
    case kUInt16: return measure<Whole<Bits16, Bits16>>(item, block, memory, &is_last);
    case kInt32: return measure<Whole<Bits32, int>>(item, block, memory, &is_last);
    case kUInt32: return measure<Whole<Bits32, Bits32>>(item, block, memory, &is_last);
    case kInt64: return measure<Whole<Bits64, long long>>(item, block, memory, &is_last);
    case kUInt64: return measure<Whole<Bits64, Bits64>>(item, block, memory, &is_last);
    case kFloat16: return measure<Half>(item, block, memory, &is_last);
    case kBFloat16: return measure<Brain>(item, block, memory, &is_last);
    case kFloat32: return measure<Float>(item, block, memory, &is_last);
    case kFloat64: return measure<Double>(item, block, memory, &is_last);
    case kFloat8E4M3FN: return measure<E4M3FN>(item, block, memory, &is_last);
    case kFloat8E5M2: return measure<E5M2>(item, block, memory, &is_last);
    case kFloat8E4M3FNUZ: return measure<Finite<4, 3, 8>>(item, block, memory, &is_last);
    case kFloat8E5M2FNUZ: return measure<Finite<5, 2, 16>>(item, block, memory, &is_last);
    case kFloat8E8M0FNU: return measure<E8M0>(item, block, memory, &is_last);
  }
}
