#include "capture/polygraphy_results.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/mapped_file.h"
#include "capture/dump_folders.h"
#include "formats/polygraphy_json.h"

namespace ait::capture {
namespace {

// 1 of "1/logits" and of "onnxrt/1/logits".
std::string iteration_of(const std::string& name) {
  for (size_t begin = 0, end = name.find('/'); end != std::string::npos;
       begin = end + 1, end = name.find('/', begin))
    if (const std::string part = name.substr(begin, end - begin); is_number(part)) return part;
  return "0";
}

}  // namespace

bool is_polygraphy_results(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto file = MappedFile::open(path);
  return file && formats::polygraphy_json::sniff((*file)->bytes());
}

Result<Capture> read_polygraphy_results(const std::string& path) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return fail(mapped.error());
  const auto file = formats::polygraphy_json::open(*std::move(mapped));
  if (!file) return fail(file.error());
  Capture capture;
  capture.root = path;
  for (size_t i = 0; i < (*file)->size(); ++i) {
    TensorRecord record;
    record.path = path;
    record.member = (*file)->name(i);
    record.operation = record.member;
    record.round = iteration_of(record.member);
    capture.records.push_back(std::move(record));
  }
  std::sort(capture.records.begin(), capture.records.end(),
            [](const auto& a, const auto& b) { return natural_less(a.operation, b.operation); });
  return capture;
}

}  // namespace ait::capture
