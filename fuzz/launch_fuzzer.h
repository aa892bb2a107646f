// Programs and libraries that a command names, before anything is preloaded into them. The replay
// of the corpus (tests/attacks) includes it too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fuzz/input_folder.h"
#include "launch/elf.h"
#include "launch/program.h"

namespace ait::fuzz {

inline int read_as_program(const uint8_t* data, size_t size) {
  const std::string path = InputFolder::with("program", data, size);
  static_cast<void>(launch::read_elf(path));
  static_cast<void>(launch::read_probe_interface(path));
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  static_cast<void>(launch::find_program(path, ""));
  return 0;
}

}  // namespace ait::fuzz
