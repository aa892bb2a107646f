// The folder that dump_data writes: tensors saved by hand in a model script, each with the path of
// the file it is to be compared with.
//
//     {output}/ait_dump/{pid}_{device}/golden_tensor/{token}/{data_id}_tensor.pth
//     {output}/ait_dump/{pid}_{device}/golden_tensor/metadata.json
//         {"<data_id>": {"<token_id>": ["<golden .pth>", "<my .bin>"]}}
//
// Files of older tools may hold a data id twice, with different tokens; the two are merged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "capture/capture.h"

namespace ait::capture {

struct MappedPair {
  std::string data_id;
  std::string token_id;
  std::string golden_path;
  std::string actual_path;
};

struct ManualMapping {
  std::string metadata_path;
  std::vector<MappedPair> pairs;  // by data id, then token; numbers in numeric order
  std::vector<Error> problems;    // entries that are no pair of paths
};

// The metadata.json meant by a path: the file itself, golden_tensor, or a folder that holds
// golden_tensor; empty if none.
std::string find_metadata(const std::string& path);

// Whether a path means one.
bool is_manual_mapping(const std::string& path);

// Reads the metadata.json that a path means. A relative path in it counts from the current folder,
// then from the json's. A golden file that is not at its path is looked for below the json's folder
// by ever shorter tails of it.
Result<ManualMapping> read_manual_mapping(const std::string& path);

// Finds my files that have moved: they are looked for below `actual_root`, if that is a folder, by
// ever shorter tails of their path; if it is a file and there is one pair, it is that pair's.
void find_moved_files(ManualMapping& mapping, const std::string& actual_root);

// Adds entries to the metadata.json in `golden_tensor`, keeping all others. Safe against other
// processes that do the same (a lock file) and against being killed (written beside and renamed).
Result<void> add_to_metadata(const std::string& golden_tensor, std::span<const MappedPair> pairs);

}  // namespace ait::capture
