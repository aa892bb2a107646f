// What an ELF file says about itself, as far as preloading needs to know.
//
//   auto facts = read_elf("/bin/sh");
//   if (facts && !facts->has_loader) return Obstacle::kStatic;  // LD_PRELOAD has no effect
//
// Headers and symbols are read where they lie, every offset checked against the file.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace ait::launch {

struct ElfFacts {
  bool this_machine = false;  // class, byte order and processor are those ait was built for
  bool has_loader = false;    // asks for a dynamic loader; only looked for on this machine's files
};

// kUnsupported where it is no ELF file, kCorrupt where its headers lead out of it.
Result<ElfFacts> read_elf(const std::string& path);

// The functions of atb::Probe that a library offers to be replaced, by the std::string they take.
struct ProbeInterface {
  bool old_strings = false;  // _GLIBCXX_USE_CXX11_ABI=0
  bool new_strings = false;  // =1

  bool any() const { return old_strings || new_strings; }
};

// By the definitions of SaveTensor in the dynamic symbol table. Fails as read_elf does, and where
// the file is for another machine or has no such table.
Result<ProbeInterface> read_probe_interface(const std::string& path);

}  // namespace ait::launch
