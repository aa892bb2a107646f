// Statistics in place of a dumped file: {name}_min_max.npz for what GE dumped, {name}_min_max.npy for
// an .npy file. Internal to this library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ait::convert {

// Where the statistics of a file go; nothing for files that are no dumps by their names: texts,
// tables, hidden and temporary files, records of overflows, statistics.
std::optional<std::string> statistics_path(const std::string& path);

// Writes them; the disk has them when this returns. kCorrupt where the file is not complete (yet),
// kUnsupported where it has none: objects, texts, complex numbers, other formats.
Result<void> write_statistics(const std::string& path, const std::string& target);

// Whether a file of statistics is there and whole.
bool has_statistics(const std::string& target);

}  // namespace ait::convert
