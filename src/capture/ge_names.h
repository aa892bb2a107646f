// The names of files in a GE dump.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace ait::capture {

// "Add.Add_2.44.6.1706596912161941", or a sliced task, with ".4.{context}.{thread}.{device}" after it.
struct GeFileName {
  std::string type;
  std::string operation;
  uint64_t time = 0;
};
std::optional<GeFileName> parse_ge_file_name(std::string_view name);

// What a name in a token's folder says without being that of a dump.
enum class GeNameKind : uint8_t {
  kDump,        // may be one
  kHash,        // digits alone: the name was too long, and mapping.csv has it
  kConverted,   // a dump that was converted to statistics, see converted.h
  kStatistics,  // dumped as statistics
  kOther,       // nothing of interest: texts, temporary files, records of overflows
};
GeNameKind kind_of_ge_name(std::string_view name);

// mapping.csv: names that are too long for a file system, by the number that stands for each. Empty
// where there is none.
std::map<std::string, std::string> read_ge_mapping(const std::string& folder,
                                                   std::vector<Error>& problems);

// "dynamo_original_graph_1_rank_0_pid_4711_ts_20240125031118787351.txt"
struct GeTextName {
  uint64_t graph = 0;
  std::string rank;  // empty: the name has none
  uint64_t time = 0;
};
std::optional<GeTextName> parse_ge_text_name(std::string_view name);

}  // namespace ait::capture
