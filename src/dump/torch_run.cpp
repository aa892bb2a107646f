#include "dump/torch_run.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>

#include "base/text_file.h"
#include "record/dump_names.h"
#include "report/utf8.h"

namespace ait::dump {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxManifestBytes = size_t{256} << 20;  // as capture reads them
constexpr uint64_t kOnlyStatistics = 1;                  // of dump_statistics_mode

// One sentence for each reason in a list of the manifest.
void add_reasons(const simdjson::dom::element& manifest, const char* list, const char* what,
                 const std::string& folder, std::vector<std::string>& sentences) {
  simdjson::dom::array entries;
  if (manifest[list].get(entries) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element entry : entries) {
    std::string_view reason;
    std::string_view first;
    uint64_t count = 0;
    if (entry["reason"].get(reason) == simdjson::SUCCESS &&
        entry["first"].get(first) == simdjson::SUCCESS &&
        entry["count"].get(count) == simdjson::SUCCESS)
      sentences.push_back(fmt::format("{}: {} {}, the first {}: {}", folder, count, what,
                                      report::visible(std::string(first)),
                                      report::visible(std::string(reason))));
  }
}

void read_manifest(const simdjson::dom::element& manifest, const std::string& folder,
                   TorchRun& run) {
  simdjson::dom::object rounds;
  uint64_t expected = 0;
  uint64_t seen = 0;
  if (manifest["rounds"].get(rounds) == simdjson::SUCCESS)
    for (const auto& [number, round] : rounds) {
      uint64_t count = 0;
      if (round["expected"].get(count) == simdjson::SUCCESS) expected += count;
      if (round["seen"].get(count) == simdjson::SUCCESS) seen += count;
    }
  run.modules_expected += expected;
  run.modules_seen += seen;
  // Modules that a model does not use need no reason. Where there is one, some may have run unheard.
  simdjson::dom::array reasons;
  if (manifest["never_ran_because"].get(reasons) == simdjson::SUCCESS)
    for (const simdjson::dom::element reason : reasons)
      if (std::string_view text; reason.get(text) == simdjson::SUCCESS)
        (seen < expected ? run.problems : run.notes)
            .push_back(fmt::format("{}: {}", folder, report::visible(std::string(text))));
  add_reasons(manifest, "not_stored", "not stored", folder, run.notes);
  add_reasons(manifest, "errors", "not recorded", folder, run.problems);
  uint64_t statistics = 0;
  if (manifest["config"]["dump_statistics_mode"].get(statistics) == simdjson::SUCCESS)
    run.only_statistics = run.only_statistics || statistics == kOnlyStatistics;
}

}  // namespace

bool is_torch_folder_of(const std::string& name, const std::string& pid) {
  const size_t device_end = name.find('_');
  if (device_end == std::string::npos) return false;
  const std::string rest = name.substr(device_end + 1);
  return rest == pid || rest.starts_with(pid + "_");
}

TorchRun read_torch_run(const std::string& dump, const std::vector<uint64_t>& pids,
                        fs::file_time_type since) {
  TorchRun run;
  std::error_code error;
  for (fs::directory_iterator at(dump + "/" + record::kTorchTensorsFolder, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().native();
    const auto is_of = [&](uint64_t pid) { return is_torch_folder_of(name, std::to_string(pid)); };
    std::error_code unknown_date;
    if (std::any_of(pids.begin(), pids.end(), is_of) &&
        at->last_write_time(unknown_date) >= since && !unknown_date)
      run.folders.push_back(record::kTorchTensorsFolder + ("/" + name));
  }
  std::sort(run.folders.begin(), run.folders.end());
  simdjson::dom::parser parser;
  for (const std::string& folder : run.folders) {
    simdjson::dom::element manifest;
    const auto text =
        read_text(fmt::format("{}/{}/{}", dump, folder, record::kManifestFile), kMaxManifestBytes);
    if (text && parser.parse(*text).get(manifest) == simdjson::SUCCESS)
      read_manifest(manifest, folder, run);
    else
      run.notes.push_back(fmt::format("{}/{} cannot be read", folder, record::kManifestFile));
  }
  return run;
}

}  // namespace ait::dump
