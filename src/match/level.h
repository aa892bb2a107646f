// How much of a model is compared (`--cmp-level`): whole layers, the modules in them, single
// operations, or what comes out at the end.
//
//     layer    2_Layer, root.model.layers.0; embedding, last norm and head beside them
//     module   2_Layer/1_Attention, root.model.layers.0.self_attn
//     api      operations that have none below them
//     logits   the last operation of each token: root.lm_head
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "capture/recording.h"
#include "match/program.h"

namespace ait::match {

enum class CompareLevel : uint8_t { kAll, kLayer, kModule, kApi, kLogits };

// kAll for an empty word; "token" is an older word for "logits". kUsage for any other.
Result<CompareLevel> parse_compare_level(std::string_view word);

// Whether an operation of a program is compared at a level.
bool is_of(CompareLevel level, const capture::Recording& recording, const Program& program,
           uint32_t operation);

}  // namespace ait::match
