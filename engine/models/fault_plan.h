// Faults that a llama model can be given on purpose: what `ait-llama --fault` takes.
//
//   auto fault = parse_fault("epsilon@layer=3,op=RmsNorm,round=0,size=0.01");
//
// Kernel faults make one operation compute wrongly although its parameters are right; wiring faults
// leave every operation right and connect them wrongly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "atb/fault.h"
#include "atb/types.h"
#include "base/error.h"

namespace atb_speed {

enum class FaultKind : uint8_t {
  kEpsilon,
  kOverflow,
  kRow,
  kScale,
  kRopePairing,
  kResidual,
  kHeadMapping,
  kPosition,
};

struct Fault {
  FaultKind kind = FaultKind::kScale;
  int64_t layer = 0;
  std::string op;                    // type of the operation without "Operation"
  int64_t index = 0;                 // which of several of that type in the layer
  std::optional<int64_t> round = 0;  // 0 the prefill, 1 the first decoded token, …; none: all
  float size = 0;
  std::optional<int64_t> rank = std::nullopt;  // none: all

  // The part that a kernel acts on; none for wiring faults.
  std::optional<atb::KernelFault> kernel() const;
  bool in_round(int64_t wanted) const { return !round || *round == wanted; }
  bool on_rank(int64_t wanted) const { return !rank || *rank == wanted; }
};

AIT_ATB_API ait::Result<Fault> parse_fault(const std::string& text);

// One line for each kind: name, kind of fault, what it does, defaults.
AIT_ATB_API std::string fault_list();

}  // namespace atb_speed
