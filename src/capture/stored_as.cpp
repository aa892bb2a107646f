#include "capture/stored_as.h"

#include <simdjson.h>

#include <string>

#include "base/text_file.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

constexpr size_t kMaxManifestBytes = size_t{256} << 20;  // as completeness.cpp reads them

std::string stored_as(const Rank& rank) {
  const auto text = read_text(rank.path + "/" + record::kManifestFile, kMaxManifestBytes);
  simdjson::dom::parser parser;
  simdjson::dom::element manifest;
  std::string_view type;
  if (!text || parser.parse(*text).get(manifest) != simdjson::SUCCESS ||
      manifest["config"]["store_as"].get(type) != simdjson::SUCCESS)
    return {};
  return std::string(type);
}

}  // namespace

void note_stored_as(Recording& recording) {
  for (const Rank& rank : recording.ranks) {
    const std::string type = stored_as(rank);
    if (type.empty()) continue;
    recording.problems.push_back(
        Error(ErrorCode::kUsage, rank.path)
        << "float32 tensors were stored as " << printable(type)
        << " (store_as): what they differ by is partly the rounding of the recording; compare with "
           "a "
           "run that was stored in the same way, or record again without it");
    return;
  }
}

}  // namespace ait::capture
