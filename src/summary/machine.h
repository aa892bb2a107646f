// What is on this machine, and what will and won't work on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/machine.h"
#include "report/json.h"

namespace ait::summary {

struct MachineFacts {
  launch::Machine machine;
  std::vector<launch::Disk> disks;
  std::optional<launch::AtbLibrary> atb;
  launch::ProbeFile probe;
  std::string engine_host;
  launch::Python python;
};

MachineFacts examine_here();

std::string machine_text(const MachineFacts& facts);
report::Json machine_json(const MachineFacts& facts);

}  // namespace ait::summary
