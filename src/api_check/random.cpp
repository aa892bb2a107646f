#include "api_check/random.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "api_check/random_kernel.h"
#include "base/parallel.h"
#include "tensor/half.h"

namespace ait::api_check {
namespace {

constexpr size_t kChunk = size_t{1} << 16;  // elements that a thread fills at a time
// Behind so many elements their values come again: drawing more takes longer than most functions do.
// A prime, so that no row of a matrix is the same as another.
constexpr size_t kPeriod = 65537;
constexpr size_t kPlaces = 256;  // whose numbers are made at a time

uint64_t mixed(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint64_t key_of(const Stream& stream) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : stream.key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return mixed(hash ^ mixed(stream.seed));
}

uint64_t joined(const uint32_t* numbers) { return (uint64_t{numbers[0]} << 32) | numbers[1]; }

// In [0, 1), with as many bits as a double has.
struct WideUnit {
  static constexpr size_t kSharing = 2;  // elements with the numbers of one place
  double operator()(const uint32_t* numbers) const {
    return static_cast<double>(joined(numbers) >> 11) * 0x1p-53;
  }
};

// The same with 32 bits. By way of a signed number: of those every machine can make doubles in vectors.
struct NarrowUnit {
  static constexpr size_t kSharing = 4;
  double operator()(const uint32_t* number) const {
    return (static_cast<double>(static_cast<int32_t>(*number ^ 0x80000000U)) + 0x1p31) * 0x1p-32;
  }
};

// Calls run(first, end) for parts of all elements. All but the last begin and end at a multiple of
// kChunk.
template <typename Run>
void for_each_part(size_t elements, Run run) {
  const size_t chunks = (elements + kChunk - 1) / kChunk;
  parallel_for(chunks, chunks > 1 ? 0 : 1, [&](size_t chunk) {
    run(chunk * kChunk, std::min(elements, (chunk + 1) * kChunk));
  });
}

// Calls make(numbers, first, end) for the elements from `begin` to `end` in turn, of which `sharing`
// have the four numbers of a place together.
template <typename Make>
void with_numbers(const Stream& stream, size_t sharing, size_t begin, size_t end, Make make) {
  const uint64_t key = key_of(stream);
  std::array<uint32_t, kPlaces * 4> numbers;
  for (size_t at = begin; at < end; at += kPlaces * sharing) {
    const size_t to = std::min(end, at + kPlaces * sharing);
    philox(key, stream.tensor, at / sharing, (to - at + sharing - 1) / sharing, numbers.data());
    make(numbers.data(), at, to);
  }
}

// Repeats the first kPeriod elements.
template <typename T>
void repeat(size_t elements, T* values) {
  if (elements <= kPeriod) return;
  for_each_part(elements - kPeriod, [&](size_t first, size_t end) {
    for (size_t at = first; at < end;) {
      const size_t from = at % kPeriod;
      const size_t count = std::min(end - at, kPeriod - from);
      std::copy_n(values + from, count, values + kPeriod + at);
      at += count;
    }
  });
}

template <typename T>
void set_ends(T low, T high, size_t elements, T* values) {
  if (elements == 0) return;
  values[0] = low;
  values[elements - 1] = high;
}

// `place` makes values of numbers in [0, 1), where they stand. The first and the last element are `low`
// and `high`.
template <typename Place>
void fill_reals(const Stream& stream, DType dtype, double low, double high, size_t elements,
                void* out, Place place) {
  const auto fill = [&](auto unit, auto round) {
    constexpr size_t kSharing = decltype(unit)::kSharing;
    using T = decltype(round(0.0));
    auto* values = static_cast<T*>(out);
    with_numbers(stream, kSharing, 0, std::min(elements, kPeriod),
                 [&](const uint32_t* numbers, size_t first, size_t end) {
                   std::array<double, kPlaces * 4> reals;
                   for (size_t i = 0; i < end - first; ++i)
                     reals[i] = unit(&numbers[i * (4 / kSharing)]);
                   place(end - first, reals.data());
                   for (size_t i = first; i < end; ++i) values[i] = round(reals[i - first]);
                 });
    repeat(elements, values);
    set_ends(round(low), round(high), elements, values);
  };
  switch (dtype) {
    case DType::kFloat16:
      return fill(NarrowUnit(), [](double x) { return float_to_fp16(static_cast<float>(x)); });
    case DType::kBFloat16:
      return fill(NarrowUnit(), [](double x) { return float_to_bf16(static_cast<float>(x)); });
    case DType::kFloat32:
      return fill(NarrowUnit(), [](double x) { return static_cast<float>(x); });
    default:
      return fill(WideUnit(), [](double x) { return x; });
  }
}

template <typename T>
void fill_integers(const Stream& stream, int64_t low, int64_t high, size_t elements, void* out) {
  __extension__ using Wide = unsigned __int128;
  const Wide count =
      static_cast<Wide>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low)) + 1;
  auto* values = static_cast<T*>(out);
  with_numbers(stream, 2, 0, std::min(elements, kPeriod),
               [&](const uint32_t* numbers, size_t first, size_t end) {
                 for (size_t i = first; i < end; ++i) {
                   const Wide random = joined(&numbers[2 * (i - first)]);
                   const auto step = static_cast<uint64_t>((random * count) >> 64);
                   values[i] = static_cast<T>(static_cast<uint64_t>(low) + step);
                 }
               });
  repeat(elements, values);
  set_ends(static_cast<T>(low), static_cast<T>(high), elements, values);
}

// Multiplies each by 1 + size or 1 - size, as the bits of random numbers say.
template <typename T>
void move(const Stream& stream, double size, size_t elements, void* out) {
  auto* values = static_cast<T*>(out);
  const std::array<T, 2> factors = {static_cast<T>(1 - size), static_cast<T>(1 + size)};
  constexpr size_t kBits = 128;  // of the numbers of a place
  static_assert(kChunk % kBits == 0);
  for_each_part(elements, [&](size_t begin, size_t end) {
    with_numbers(stream, kBits, begin, end, [&](const uint32_t* numbers, size_t first, size_t to) {
      for (size_t i = first; i < to; ++i) {
        const size_t bit = i - first;
        const T moved = values[i] * factors[(numbers[bit / 32] >> (bit % 32)) & 1];
        if (std::isfinite(moved)) values[i] = moved;
      }
    });
  });
}

}  // namespace

bool is_real(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
         dtype == DType::kFloat64;
}

bool is_integer(DType dtype) {
  return info(dtype).kind == DTypeKind::kInteger && dtype != DType::kBool;
}

void draw_reals(const Stream& stream, DType dtype, double low, double high, size_t elements,
                void* out) {
  fill_reals(stream, dtype, low, high, elements, out,
             [=](size_t count, double* numbers) { spread(low, high, count, numbers); });
}

void draw_either(const Stream& stream, DType dtype, double low, double high, size_t elements,
                 void* out) {
  fill_reals(stream, dtype, low, high, elements, out, [=](size_t count, double* numbers) {
    for (size_t i = 0; i < count; ++i) numbers[i] = numbers[i] >= 0.5 ? high : low;
  });
}

void move_reals(const Stream& stream, DType dtype, double size, size_t elements, void* out) {
  return dtype == DType::kFloat32 ? move<float>(stream, size, elements, out)
                                  : move<double>(stream, size, elements, out);
}

void draw_integers(const Stream& stream, DType dtype, int64_t low, int64_t high, size_t elements,
                   void* out) {
  switch (size_bytes(dtype)) {
    case 1:
      return fill_integers<uint8_t>(stream, low, high, elements, out);
    case 2:
      return fill_integers<uint16_t>(stream, low, high, elements, out);
    case 4:
      return fill_integers<uint32_t>(stream, low, high, elements, out);
    default:
      return fill_integers<uint64_t>(stream, low, high, elements, out);
  }
}

// Each element in turn is true with the probability that leaves the right number in the end.
void draw_mask(const Stream& stream, size_t true_count, size_t elements, void* out) {
  auto* values = static_cast<uint8_t*>(out);
  size_t wanted = std::min(true_count, elements);
  with_numbers(stream, 1, 0, elements, [&](const uint32_t* numbers, size_t first, size_t end) {
    for (size_t i = first; i < end; ++i) {
      const double left = static_cast<double>(elements - i);
      const bool chosen =
          WideUnit()(&numbers[4 * (i - first)]) * left < static_cast<double>(wanted);
      values[i] = chosen ? 1 : 0;
      if (chosen) --wanted;
    }
  });
}

}  // namespace ait::api_check
