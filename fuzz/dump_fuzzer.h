// What processes leave for the launcher: manifests of torch, results of an overflow check, profiles,
// ledgers. The replay of the corpora (tests/attacks) includes it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "capture/atb_dump.h"
#include "capture/torch_dump.h"
#include "dump/cpu_profiling.h"
#include "dump/overflow_results.h"
#include "dump/recorded_run.h"
#include "dump/torch_run.h"
#include "fuzz/input_folder.h"

namespace ait::fuzz {

// As the launcher reads it after a run, and as a comparison does: that of a torch process, and that
// of the launcher beside a dump of the library.
inline int read_as_manifest(const uint8_t* data, size_t size) {
  InputFolder::with("torch_tensors/cpu_7/manifest.json", data, size);
  const InputFolder& folder = InputFolder::only();
  static_cast<void>(
      dump::read_torch_run(folder.path(), {7}, std::filesystem::file_time_type::min()));
  folder.write("torch_tensors/cpu_7/0/root/output.pth", "x");
  static_cast<void>(capture::read_torch_dump(folder.path()));
  InputFolder::with("manifest.json", data, size);
  folder.write("tensors/0_7/0/0_Linear/after/outtensor0.bin", "x");
  static_cast<void>(capture::read_atb_dump(folder.path()));
  return 0;
}

inline int read_as_run_file(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // What was put in order has no line that has to be put in order.
  if (!dump::profiling_by_operation(dump::profiling_by_operation(text)).empty()) std::abort();
  InputFolder::with("ait_overflow_res_7.txt", data, size);
  const InputFolder& folder = InputFolder::only();
  if (const auto results = dump::read_results(folder.path(), 7, {}))
    for (const auto& [name, count] : results->operators) static_cast<void>(dump::ids_of(name));
  dump::cut_off_half_line(folder.path() + "/ait_overflow_res_7.txt");
  record::Ledger ledger;
  record::read_ledger(folder.write("7.ledger", text).c_str(), ledger);
  return 0;
}

}  // namespace ait::fuzz
