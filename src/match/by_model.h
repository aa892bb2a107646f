// Which models of two runs belong together, where a process ran several: an encoder and a decoder of
// their own, a model and the one that judges it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capture/recording.h"
#include "match/automatic.h"

namespace ait::match {

// Golden's model and mine, in the order of mine. Models of the same kind and structure belong
// together, those of the same kind, those with the same names of modules; of equals the first with
// the first. Models that have nothing of that in common are a pair only where nothing else is: then
// the largest of both sides.
std::vector<std::pair<size_t, size_t>> pair_models(std::span<const capture::Recording> golden,
                                                   std::span<const capture::Recording> actual);

// What was found of each pair of models as one, in order; subjects begin with the model's name:
// "T5Stack/root.block.0". `names` are those of the models.
AutomaticPairs put_together(std::vector<AutomaticPairs> found, std::vector<std::string> names);

}  // namespace ait::match
