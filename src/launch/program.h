// Which file a command will make the kernel run, and whether a preload can reach it.
//
//   auto program = find_program("run.sh", "/usr/bin:/bin");
//   program->path;      // "/usr/bin/run.sh"
//   program->runs;      // "/bin/bash", what its first line names
//   program->obstacle;  // Obstacle::kNone
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace ait::launch {

// Why the loader will not honour LD_PRELOAD.
enum class Obstacle : uint8_t {
  kNone,
  kStatic,        // there is no loader
  kOtherMachine,  // the probe is not for it
  kOtherRights,   // setuid, setgid or capabilities: the loader ignores LD_PRELOAD
};

struct Program {
  std::string path;
  std::string runs;  // the same, or for a script the interpreter that runs it in the end
  Obstacle obstacle = Obstacle::kNone;
};

// Looks `word` up as exec does: as a path if it holds a slash, otherwise in the folders of
// `search_path`. kNotFound, or kUnreadable for what is there but cannot be run. Scripts are
// followed through their #! lines, `#!/usr/bin/env NAME` included; a file that cannot be looked
// into is taken to have no obstacle.
Result<Program> find_program(const std::string& word, const std::string& search_path);

// One sentence about `program` for somebody who wonders why nothing was recorded; "" for kNone.
std::string obstacle_text(const Program& program);

}  // namespace ait::launch
