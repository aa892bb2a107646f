// What the torch recorder says of a run: each of its folders has a manifest of its own
// (docs/torch_dump.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ait::dump {

struct TorchRun {
  std::vector<std::string> folders;  // below the dump: "torch_tensors/cpu_4711"
  uint64_t modules_expected = 0;     // over all rounds that were recorded
  uint64_t modules_seen = 0;
  bool only_statistics = false;       // in place of tensors
  bool is_watched = false;            // tensors only where a condition held
  std::vector<std::string> problems;  // what kept modules from being heard or recorded
  std::vector<std::string> notes;     // what else is known, such as what could not be stored
};

// Those of the given processes. A manifest that cannot be read is a note. `since` is when the run
// began: a process of an earlier run may have had the same pid.
TorchRun read_torch_run(const std::string& dump, const std::vector<uint64_t>& pids,
                        std::filesystem::file_time_type since);

// Whether a folder of torch_tensors belongs to a process: {device}_{pid}, or with a number behind
// it where the process recorded several models.
bool is_torch_folder_of(const std::string& name, const std::string& pid);

}  // namespace ait::dump
