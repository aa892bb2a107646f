#include "api_check/random.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "tensor/half.h"

namespace ait::api_check {
namespace {

constexpr size_t kChunk = size_t{1} << 16;  // elements that a thread fills at a time
// Behind so many elements their values come again: drawing more takes longer than most functions do.
// A prime, so that no row of a matrix is the same as another.
constexpr size_t kPeriod = 65537;

using Block = std::array<uint32_t, 4>;

uint64_t mixed(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// The four numbers of a place.
class Philox {
 public:
  explicit Philox(const Stream& stream) : tensor_(stream.tensor) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : stream.key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    key_ = mixed(hash ^ mixed(stream.seed));
  }

  Block operator()(uint64_t place) const {
    Block c = {static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32), tensor_, 0};
    auto k0 = static_cast<uint32_t>(key_);
    auto k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

 private:
  uint64_t key_;
  uint32_t tensor_;
};

// In [0, 1), with as many bits as a double has.
double unit(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// Calls run(first, end) for parts of all elements. All but the last begin and end at a multiple of 4.
template <typename Run>
void for_each_part(size_t elements, Run run) {
  const size_t chunks = (elements + kChunk - 1) / kChunk;
  parallel_for(chunks, chunks > 1 ? 0 : 1, [&](size_t chunk) {
    run(chunk * kChunk, std::min(elements, (chunk + 1) * kChunk));
  });
}

// Calls make(high, low, i) for each element i. Two have a block of random numbers together.
template <typename Make>
void for_each_element(const Stream& stream, size_t elements, Make make) {
  const Philox philox(stream);
  for_each_part(elements, [&](size_t first, size_t end) {
    for (size_t i = first; i < end; i += 2) {
      const Block block = philox(i / 2);
      make(block[0], block[1], i);
      if (i + 1 < end) make(block[2], block[3], i + 1);
    }
  });
}

// The same with make(number, i): four have a block together. Enough for types of 32 bits or fewer.
template <typename Make>
void for_each_narrow_element(const Stream& stream, size_t elements, Make make) {
  const Philox philox(stream);
  for_each_part(elements, [&](size_t first, size_t end) {
    for (size_t i = first; i < end; i += 4) {
      const Block block = philox(i / 4);
      for (size_t k = 0; k < std::min<size_t>(4, end - i); ++k) make(block[k], i + k);
    }
  });
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

template <typename T, typename Draw>
void fill(const Stream& stream, size_t elements, void* out, Draw draw) {
  auto* values = static_cast<T*>(out);
  for_each_element(stream, std::min(elements, kPeriod),
                   [&](uint32_t high, uint32_t low, size_t i) { values[i] = draw(high, low); });
  repeat(elements, values);
}

template <typename T, typename Draw>
void fill_narrow(const Stream& stream, size_t elements, void* out, Draw draw) {
  auto* values = static_cast<T*>(out);
  for_each_narrow_element(stream, std::min(elements, kPeriod),
                          [&](uint32_t number, size_t i) { values[i] = draw(number); });
  repeat(elements, values);
}

// `value` gives a double from a number in [0, 1). The first and the last element are `low` and `high`.
template <typename Value>
void fill_reals(const Stream& stream, DType dtype, double low, double high, size_t elements,
                void* out, Value value) {
  const auto narrow = [&](auto round) {
    using T = decltype(round(0.0));
    fill_narrow<T>(stream, elements, out,
                   [&](uint32_t number) { return round(value(number * 0x1p-32)); });
    set_ends(round(low), round(high), elements, static_cast<T*>(out));
  };
  switch (dtype) {
    case DType::kFloat16:
      return narrow([](double x) { return float_to_fp16(static_cast<float>(x)); });
    case DType::kBFloat16:
      return narrow([](double x) { return float_to_bf16(static_cast<float>(x)); });
    case DType::kFloat32:
      return narrow([](double x) { return static_cast<float>(x); });
    default:
      fill<double>(stream, elements, out,
                   [&](uint32_t a, uint32_t b) { return value(unit(a, b)); });
      set_ends(low, high, elements, static_cast<double*>(out));
  }
}

template <typename T>
void fill_integers(const Stream& stream, int64_t low, int64_t high, size_t elements, void* out) {
  __extension__ using Wide = unsigned __int128;
  const Wide count =
      static_cast<Wide>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low)) + 1;
  fill<T>(stream, elements, out, [&](uint32_t a, uint32_t b) {
    const uint64_t random = (uint64_t{a} << 32) | b;
    const auto step = static_cast<uint64_t>((static_cast<Wide>(random) * count) >> 64);
    return static_cast<T>(static_cast<int64_t>(static_cast<uint64_t>(low) + step));
  });
  set_ends(static_cast<T>(low), static_cast<T>(high), elements, static_cast<T*>(out));
}

// Multiplies each by 1 + size or 1 - size, as the bits of random numbers say.
template <typename T>
void move(const Stream& stream, double size, size_t elements, void* out) {
  auto* values = static_cast<T*>(out);
  const Philox philox(stream);
  const std::array<T, 2> factors = {static_cast<T>(1 - size), static_cast<T>(1 + size)};
  constexpr size_t kBits = 128;  // of a block
  static_assert(kChunk % kBits == 0);
  for_each_part(elements, [&](size_t first, size_t end) {
    for (size_t i = first; i < end; i += kBits) {
      const Block block = philox(i / kBits);
      for (size_t k = 0; k < std::min(kBits, end - i); ++k) {
        const T moved = values[i + k] * factors[(block[k / 32] >> (k % 32)) & 1];
        if (std::isfinite(moved)) values[i + k] = moved;
      }
    }
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
  // Halves first: the distance of two doubles may be infinite.
  const double half_range = high / 2 - low / 2;
  fill_reals(stream, dtype, low, high, elements, out, [=](double number) {
    const double share = number * half_range;
    return std::clamp(low + share + share, low, high);
  });
}

void draw_either(const Stream& stream, DType dtype, double low, double high, size_t elements,
                 void* out) {
  fill_reals(stream, dtype, low, high, elements, out,
             [=](double number) { return number >= 0.5 ? high : low; });
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
  const Philox philox(stream);
  auto* values = static_cast<uint8_t*>(out);
  size_t wanted = std::min(true_count, elements);
  for (size_t i = 0; i < elements; ++i) {
    const Block block = philox(i);
    const bool chosen =
        unit(block[0], block[1]) * static_cast<double>(elements - i) < static_cast<double>(wanted);
    values[i] = chosen ? 1 : 0;
    if (chosen) --wanted;
  }
}

}  // namespace ait::api_check
