// What `ait llm dump` and its predecessors record of an acceleration library.
//
//     {root}/tensors/{device}_{pid}/{round}/{id}_{name}[/{i}_{child}]*[/{k}_{kernel}]/{before|after}/
//         intensor0.bin  outtensor0.bin  (…0_name.bin of newer versions, inTensor0.bin of old ones)
//     {root}/tensors/{device}_{pid}/{round}/…/op_param.json
//     {root}/model/{pid}/{model}.json    {root}/layer/{pid}/{operation}.json       topologies
//
// {round} is how often that top-level operation had been set up: operations of prefill and of
// decode count for themselves, so folder 0 holds the first round of both. Old versions write
// {pid}_{device} or {pid}_{thread}, some without ait_dump/tensors before it, the oldest {pid} or
// thread_{pid}; the newest keep tensors in atb_dump_data/data and topologies in
// atb_dump_data/info, and write {round}/statistic.csv (formats/atb_statistics.h), which is read where
// there is no .bin.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "capture/recording.h"

namespace ait::capture {

inline constexpr Traits kAtbTraits = {.words = "an acceleration library's dump",
                                      .identity = Traits::Identity::kPlaces,
                                      .rounds = Traits::Rounds::kSetUps,
                                      .batch = Traits::Batch::kPacked,
                                      .types = Traits::Types::kLibrary,
                                      .inputs_are_values = false};

// The kind of an operation; its parameters tell additions from other element-wise work.
OpKind atb_kind(std::string_view type, std::string_view param);

// Whether a path is one, or a part of one: see dump_folders.h.
bool is_atb_dump(const std::string& path);

// What a dump holds in place of tensors: "model, layer", or "nothing". Nothing where the path is
// neither a dump by its name nor the folder of one.
std::optional<std::string> held_without_tensors(const std::string& path);

// Fails where there is none. What is missing or makes no sense is one of `problems`.
Result<Recording> read_atb_dump(const std::string& path);

}  // namespace ait::capture
