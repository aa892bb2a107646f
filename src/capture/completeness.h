// Whether a recording holds all that was to be recorded, as the manifests beside it say.
//
//     {root}/manifest.json, manifest_{start}.json   of `ait llm dump`: "complete", "incomplete_because",
//                                                   "processes", "options"
//     {rank}/manifest.json                          of register_hook: "state", "tensors", "errors"
//
// Dumps of other tools have none, and then nothing is known. A manifest that cannot be read is a
// doubt and no failure.
#pragma once

#include <map>
#include <string>

#include "capture/recording.h"

namespace ait::capture {

// Of a dump of the acceleration library. Ranks, rounds and slots must be known.
Completeness judge_library_dump(const Recording& recording);

// Of the processes that the manifests in a folder name, which rank each was, where they say it.
std::map<std::string, std::string> ranks_in_manifests(const std::string& root);

// Of a torch dump.
Completeness judge_torch_dump(const Recording& recording);

}  // namespace ait::capture
