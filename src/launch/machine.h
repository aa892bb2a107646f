// What this machine has: for `ait doctor`, and for whoever wonders why nothing was recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/elf.h"

namespace ait::launch {

struct Machine {
  std::string system;  // "Linux 6.1.0 x86_64"
  std::string cpu;
  size_t cores = 0;  // those this process may use
  uint64_t memory_bytes = 0;
  uint64_t available_bytes = 0;
  std::string glibc;
};

struct Disk {
  std::string folder;
  uint64_t free_bytes = 0;
  bool writable = false;
};

// The acceleration library, where the loader or its own set-up script would find it.
struct AtbLibrary {
  std::string path;
  std::optional<ProbeInterface> probe;  // nothing where the file cannot be looked into
  std::string problem;                  // why not
};

// The library that recording puts in front of it.
struct ProbeFile {
  std::string path;
  std::string problem;  // why it cannot be used; "" where it can
};

// The program that runs a model on the acceleration library that comes with ait (docs/engine.md),
// beside this one; "" where the installation has none.
std::string find_engine_host();

struct PythonPackage {
  std::string name;
  std::string version;  // "" where it is missing, "unknown" where it does not say
};

struct Python {
  std::string program;  // $AIT_PYTHON or python3
  std::string version;  // "" where it does not run
  std::string problem;  // why not
  std::vector<PythonPackage> packages;
};

Machine examine_machine();
Disk examine_disk(const std::string& folder);
std::optional<AtbLibrary> find_atb();
ProbeFile examine_probe();
Python examine_python();

}  // namespace ait::launch
