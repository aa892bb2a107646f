#include "capture/polygraphy_results.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/mapped_file.h"
#include "capture/dump_folders.h"
#include "capture/listing.h"
#include "capture/module_tree.h"
#include "capture/named_run.h"
#include "capture/torch_dump.h"
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

// In the order of the file.
Result<Capture> read_records(const std::string& path) {
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
  return capture;
}

}  // namespace

bool is_polygraphy_results(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const auto file = MappedFile::open(path);
  return file && formats::polygraphy_json::sniff((*file)->bytes());
}

Result<Capture> read_polygraphy_results(const std::string& path) {
  auto capture = read_records(path);
  if (capture)
    std::sort(capture->records.begin(), capture->records.end(),
              [](const auto& a, const auto& b) { return natural_less(a.operation, b.operation); });
  return capture;
}

Result<Recording> read_polygraphy_run(const std::string& path) {
  const auto capture = read_records(path);
  if (!capture) return fail(capture.error());
  const std::filesystem::path normal = normal_path(path);
  Recording recording;
  recording.root = path;
  recording.traits = kTorchTraits;
  recording.traits.words = "results of Polygraphy";
  recording.ranks.push_back({normal.parent_path().string(), "", "0", ""});
  const auto less = [](const std::string& a, const std::string& b) { return natural_less(a, b); };
  std::map<std::string, size_t, decltype(less)> rounds(less);
  for (const TensorRecord& record : capture->records) rounds.emplace(record.round, 0);
  for (auto& [name, place] : rounds) {
    place = recording.rounds.size();
    recording.rounds.push_back(name);
  }
  NamedRun run;
  for (size_t i = 0; i < capture->records.size(); ++i) {
    const TensorRecord& record = capture->records[i];
    // "logits" of "0/logits", "onnxrt_logits" of "onnxrt/0/logits"
    std::string name = record.operation;
    const std::string iteration = record.round + "/";
    if (name.starts_with(iteration))
      name.erase(0, iteration.size());
    else if (const size_t at = name.find("/" + iteration); at != std::string::npos)
      name.erase(at, iteration.size());
    std::replace(name.begin(), name.end(), '/', '_');
    const std::string operation = "root." + name;
    run.add_operation(operation, "", module_around(operation), i);
    run.add(0, rounds.at(record.round), "",
            {operation, "output", normal.filename().string(), record.member});
  }
  run.finish(recording);
  return recording;
}

}  // namespace ait::capture
