#include "api_check/random_kernel.h"

// Compiled once for every vector target: Highway includes this file again for each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "api_check/random_kernel.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, by Highway's rule.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace ait::api_check::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A place in each lane. Of each number only the lower half of its lane counts: that is what MulEven
// multiplies.
void philox(uint64_t key, uint32_t tensor, uint64_t first, size_t count, uint32_t* out) {
  const hn::CappedTag<uint64_t, 8> d;
  const hn::Repartition<uint32_t, decltype(d)> halves;
  const hn::Rebind<uint32_t, decltype(d)> narrow;
  const auto product = [&](auto number, uint32_t factor) {
    return hn::MulEven(hn::BitCast(halves, number), hn::Set(halves, factor));
  };
  const auto lane = hn::Iota(d, 0);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    auto c0 = hn::Add(lane, hn::Set(d, first + i));
    auto c1 = hn::ShiftRight<32>(c0);
    auto c2 = hn::Set(d, tensor);
    auto c3 = hn::Zero(d);
    auto k0 = static_cast<uint32_t>(key);
    auto k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = product(c0, 0xD2511F53);
      const auto p1 = product(c2, 0xCD9E8D57);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, k0));
      c1 = p1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, k1));
      c3 = p0;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    hn::StoreInterleaved4(hn::TruncateTo(narrow, c0), hn::TruncateTo(narrow, c1),
                          hn::TruncateTo(narrow, c2), hn::TruncateTo(narrow, c3), narrow,
                          out + 4 * i);
  }
}

void spread(double low, double high, size_t count, double* numbers) {
  const hn::CappedTag<double, 8> d;
  const auto lowest = hn::Set(d, low), highest = hn::Set(d, high);
  // Halves first: the distance of two doubles may be infinite.
  const auto half_range = hn::Set(d, high / 2 - low / 2);
  for (size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto share = hn::Mul(hn::LoadU(d, numbers + i), half_range);
    const auto sum = hn::Add(hn::Add(lowest, share), share);
    hn::StoreU(hn::Min(hn::Max(sum, lowest), highest), d, numbers + i);
  }
}

}  // namespace ait::api_check::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ait::api_check {

HWY_EXPORT(philox);
HWY_EXPORT(spread);

void philox(uint64_t key, uint32_t tensor, uint64_t first, size_t count, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(philox)(key, tensor, first, count, out);
}

void spread(double low, double high, size_t count, double* numbers) {
  HWY_DYNAMIC_DISPATCH(spread)(low, high, count, numbers);
}

}  // namespace ait::api_check
#endif
