// What Ascend's graph engine (GE) leaves of a model that runs through TorchAir with its dump switched
// on (torchair_dump.get_ge_dump_config).
//
//     {root}/dynamo_original_graph_1_rank_0_pid_4711_ts_20240125031118787351.txt      graph/ge_text.h
//     {root}/worldsize2_global_rank0/{time}/{device}/{model}/{model id}/{token}/{file}
//     {root}/{time}/{device}/{model}/{model id}/{token}/{file}        PTA up to 7.1.0: no ranks
//
// {file} is {type}.{operation}.{task}.{stream}.{microseconds}, formats/ge_dump.h: all tensors of one
// operation. {model} begins with the graph's name, "graph_1". {token} counts the executions of that
// graph from 0. The root is msit_ge_dump, or dump_{time} of version 1.0; the folder that holds it and
// one rank's folder are taken as well.
//
// Operations come with what they were made of, as far as the text of the graph tells it.
#pragma once

#include <string>

#include "capture/recording.h"

namespace ait::capture {

inline constexpr Traits kGeTraits = {.words = "a GE dump",
                                     .identity = Traits::Identity::kPlaces,
                                     .rounds = Traits::Rounds::kGraphs,
                                     .batch = Traits::Batch::kApart,
                                     .types = Traits::Types::kLibrary,
                                     .inputs_are_values = false};

bool is_ge_tree(const std::string& path);

// Fails where there is none. Files that make no sense, and texts that cannot be read, are `problems`.
Result<Recording> read_ge_tree(const std::string& path);

}  // namespace ait::capture
