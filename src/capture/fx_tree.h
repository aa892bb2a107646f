// What TorchAir's FX mode (torchair_dump.get_fx_dump_config) and ait's own FX backend leave of a
// compiled model: the inputs and the outputs of every node of its FX graphs.
//
//     {root}/worldsize2_global_rank0/graph_1/{token}/{file}           PTA above 7.1.0
//     {root}/{token + 1}/gm_{time}_dump/{file}                        7.1.0 and below: data_dump
//     {root}/{token + 1}/{file}, {root}/{file}                        version 1.0: gm_{time}_dump
//
// {file} is {node}-{target}.INPUT.{i}.{time}.npy, .INPUT.{i}.{j}.{time}.npy for the tensors of a list,
// or .OUTPUT.{i}.{time}.npy. The root is msit_fx_dump, data_dump or gm_{time}_dump; what holds the
// first two, one rank's folder and one graph's are taken as well. Tokens count the executions of a
// graph from 0. Where the folders' names are greater by one, records have the real ones; of a
// graph that two names of time tell apart, the earlier comes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "capture/recording.h"

namespace ait::capture {

inline constexpr Traits kFxTraits = {.words = "an FX dump",
                                     .identity = Traits::Identity::kPlaces,
                                     .rounds = Traits::Rounds::kGraphs,
                                     .batch = Traits::Batch::kApart,
                                     .types = Traits::Types::kLibrary,
                                     .inputs_are_values = false};

// "add_1-aten.add.Tensor.INPUT.1.0.20240125031118787351.npy"
struct FxFileName {
  std::string node;    // "add_1"
  std::string target;  // "aten.add.Tensor"
  Direction direction = Direction::kOutput;
  uint32_t index = 0;
  std::optional<uint32_t> element;  // of a list
  uint64_t time = 0;
  bool is_statistics = false;  // in place of the data, see converted.h
};
std::optional<FxFileName> parse_fx_file_name(std::string_view name);

bool is_fx_tree(const std::string& path);

// Fails where there is none.
Result<Recording> read_fx_tree(const std::string& path);

}  // namespace ait::capture
