#include <hwy/highway.h>
#include <hwy/targets.h>

#include "metrics/compare.h"

namespace ait::metrics {
namespace {

// The kernel files are compiled for these (see CMakeLists.txt: SSSE3 is their baseline on x86).
#if HWY_ARCH_X86
constexpr int64_t kCompiledTargets = HWY_ATTAINABLE_TARGETS & ~HWY_SCALAR & ~HWY_EMU128;
#else
constexpr int64_t kCompiledTargets = HWY_ATTAINABLE_TARGETS;
#endif

void choose(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().DeInit();  // dispatch decides anew at the next call
}

// Best first: Highway gives better targets lower bits.
std::vector<int64_t> usable() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & kCompiledTargets; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}

}  // namespace

std::vector<std::string> simd_targets() {
  std::vector<std::string> names;
  for (const int64_t target : usable()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string simd_target() {
  const auto names = simd_targets();
  return names.empty() ? "none" : names.front();
}

bool force_simd_target(std::string_view name) {
  choose(0);
  if (name.empty()) return true;
  for (const int64_t target : usable()) {
    if (name == hwy::TargetName(target)) {
      choose(target);
      return true;
    }
  }
  return false;
}

}  // namespace ait::metrics
