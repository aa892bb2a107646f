// One recorded run: which tensors there are, what each of them was, and where it lies. No tensor is
// read here.
//
//   auto capture = read_plain_folder("dump/");
//   if (!capture) return fail(capture.error());
//   for (const TensorRecord& record : capture->records) …
//
// A layout (plain_folder.h, checkpoint.h, manual_mapping.h, …) turns what one tool wrote into these
// types; nothing downstream knows which tool it was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait::capture {

enum class Level : uint8_t { kOperation, kKernel };
enum class Moment : uint8_t { kAfter, kBefore };
enum class Direction : uint8_t { kOutput, kInput };
enum class Kept : uint8_t { kBytes, kStatistics, kDescription };

// One tensor of a run.
struct TensorRecord {
  std::string path;    // the file
  std::string member;  // its name inside a file that holds several; empty for a file's only tensor

  std::string rank = "0";   // device or process, as the folder says it
  std::string round = "0";  // how often the operation had been set up, as the folder says it
  std::string operation;    // where in the model: "layers.0.mlp", a relative path, a tensor's name
  std::string type;         // "Linear"; empty where the layout does not say
  Level level = Level::kOperation;
  Moment moment = Moment::kAfter;
  Direction direction = Direction::kOutput;
  uint32_t index = 0;  // which of its inputs or outputs
  uint32_t call = 0;   // which of its calls in this round
  Kept kept = Kept::kBytes;
};

struct Capture {
  std::string root;
  std::vector<TensorRecord> records;  // in an order that does not depend on the file system
  std::vector<Error> problems;  // folders that could not be listed, entries that make no sense
};

// "a2" before "a10": runs of digits compare as numbers.
bool natural_less(const std::string& a, const std::string& b);

}  // namespace ait::capture
