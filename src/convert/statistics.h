// Statistics in place of a dumped file. Internal to this library.
//
//   if (const auto target = statistics_path(path, StatisticsKind::kExtremes)) {
//     auto statistics = measure(path, *target);
//     if (statistics) done = statistics->write(*target);
//   }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "convert/watch.h"
#include "formats/write.h"

namespace ait::convert {

// Where the statistics of a file go; nothing for files that are no dumps by their names: texts,
// tables, hidden and temporary files, records of overflows, statistics.
std::optional<std::string> statistics_path(const std::string& path, StatisticsKind kind);

class Statistics {
 public:
  // Of a file that is to become `target`. kCorrupt where it is not complete (yet), kUnsupported
  // where it has none: objects, texts, complex numbers, other formats.
  static Result<Statistics> measure(const std::string& path, const std::string& target);

  // The disk has the bytes when this returns; sync_folder_of() makes sure of the name, too.
  Result<void> write(const std::string& target) const;

 private:
  // Arrays or a table.
  std::variant<std::vector<formats::NamedTensor>, std::string> content_;
};

// A name is durable when its folder is.
Result<void> sync_folder(const std::string& folder);

// Whether a file of statistics is there and whole.
bool has_statistics(const std::string& target);

}  // namespace ait::convert
