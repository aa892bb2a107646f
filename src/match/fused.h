// Projections that one run computes in one module and the other in several, in modules of the same
// name: q_proj, k_proj and v_proj of golden's self_attn, qkv_proj of mine. Data show that (forms.h),
// unless a fault makes them differ. Here the names around leave one question, whether the parts
// stand side by side in their order, and for that data need only be alike.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "capture/recording.h"
#include "match/by_place.h"
#include "match/plan.h"
#include "match/sample.h"

namespace ait::match {

// Whether the tensors are stretches of the wide one, one after the other. False where they are but
// in another order; nothing where data do not tell it.
std::optional<bool> stand_in_order(const std::vector<Sample>& parts, const Sample& wide);

// A slot of golden's or of mine in one of the rounds that are looked at.
using ReadSlot = std::function<std::optional<Sample>(bool is_golden, uint32_t slot, size_t round)>;

// Pairs of slots that names do not settle: parts of one side with the columns of the other's.
std::vector<PlannedPair> plan_fused(const capture::Recording& golden,
                                    const capture::Recording& actual, const PlaceMap& places,
                                    const std::set<uint32_t>& golden_rest,
                                    const std::set<uint32_t>& actual_rest, const ReadSlot& read,
                                    size_t rounds);

}  // namespace ait::match
