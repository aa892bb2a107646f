#include "dump/torch_run.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>

#include "base/text_file.h"
#include "dump/texts.h"
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

// Modules that never ran, with a reason, may have run where the recorder cannot see them. Without
// one the model does not use them in these rounds, as experts of a mixture, and nothing is missing.
void explain_unseen(const simdjson::dom::element& manifest, const std::string& folder,
                    uint64_t unseen, TorchRun& run) {
  simdjson::dom::array reasons;
  bool explained = false;
  if (manifest["never_ran_because"].get(reasons) == simdjson::SUCCESS)
    for (const simdjson::dom::element reason : reasons)
      if (std::string_view text; reason.get(text) == simdjson::SUCCESS) {
        explained = true;
        std::string sentence = fmt::format("{}: ", folder);
        if (unseen > 0)
          sentence += fmt::format("nothing is recorded of {}: ", count_text(unseen, "module"));
        (unseen > 0 ? run.problems : run.notes)
            .push_back(sentence + report::visible(std::string(text)));
      }
  if (unseen > 0 && !explained)
    run.notes.push_back(fmt::format(
        "{}: {} of the model did not run in the rounds recorded; never_ran in {} names them",
        folder, count_text(unseen, "module"), record::kManifestFile));
}

std::string text_of(const simdjson::simdjson_result<simdjson::dom::element>& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? report::visible(std::string(text)) : std::string();
}

uint64_t number_of(const simdjson::simdjson_result<simdjson::dom::element>& value) {
  uint64_t number = 0;
  return value.get(number) == simdjson::SUCCESS ? number : 0;
}

// "9 to 15, 20"
std::string stretches_text(const simdjson::dom::element& when) {
  constexpr size_t kMost = 5;
  simdjson::dom::array stretches;
  std::string out;
  if (when["rounds_with_tensors"].get(stretches) != simdjson::SUCCESS) return out;
  size_t count = 0;
  for (const simdjson::dom::element stretch : stretches) {
    const uint64_t first = number_of(stretch.at_pointer("/0"));
    const uint64_t last = number_of(stretch.at_pointer("/1"));
    if (count++ == kMost) return out + ", …";
    out += (out.empty() ? "" : ", ") + std::to_string(first);
    if (last != first) out += fmt::format(" to {}", last);
  }
  return out;
}

// Of which rounds tensors were kept, and why; that others have none is no fault.
void explain_watched(const simdjson::dom::element& manifest, const std::string& folder,
                     TorchRun& run) {
  simdjson::dom::element when;
  if (manifest["when"].get(when) != simdjson::SUCCESS || !when.is_object()) return;
  run.is_watched = true;
  const std::string rounds = count_text(number_of(when["rounds_watched"]), "round");
  const std::string kept = stretches_text(when);
  simdjson::dom::array events;
  std::string first;
  size_t more = 0;
  if (when["held"].get(events) == simdjson::SUCCESS)
    for (const simdjson::dom::element event : events) {
      if (!first.empty()) {
        ++more;
        continue;
      }
      const std::string median = text_of(event["median"]);
      first = fmt::format("{} held in round {} first: {} of {}, {} is {}{}",
                          text_of(event["condition"]), number_of(event["round"]),
                          text_of(event["tensor"]), text_of(event["module"]),
                          text_of(event["statistic"]), text_of(event["value"]),
                          median.empty() ? "" : fmt::format(" where {} is usual", median));
    }
  if (more > 0) first += fmt::format(" (and {} later)", count_text(more, "event"));
  if (first.empty())
    first = fmt::format("none of {} held in {}", text_of(when["conditions"]), rounds);
  const std::string which =
      kept.empty() ? "no tensors are kept" : fmt::format("tensors are kept of rounds {}", kept);
  run.notes.push_back(fmt::format("{}: {}; {}, and statistics of all {}, as --when asks", folder,
                                  first, which, rounds));
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
  expected += number_of(manifest["rounds_summed_up"]["expected"]);
  seen += number_of(manifest["rounds_summed_up"]["seen"]);
  run.modules_expected += expected;
  run.modules_seen += seen;
  explain_unseen(manifest, folder, expected - std::min(expected, seen), run);
  add_reasons(manifest, "not_stored", "not stored", folder, run.notes);
  add_reasons(manifest, "errors", "not recorded", folder, run.problems);
  explain_watched(manifest, folder, run);
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
