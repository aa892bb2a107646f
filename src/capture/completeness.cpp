#include "capture/completeness.h"

#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include "base/text_file.h"
#include "capture/listing.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;
using Time = fs::file_time_type;
using std::chrono::seconds;

// Those of torch name every module that never ran.
constexpr size_t kMaxManifestBytes = size_t{256} << 20;

// A launcher's scratch folder in the dump; it is gone when the launcher has ended in order.
constexpr std::string_view kScratchStem = ".run_";

// Files are dated when they are begun, and some file systems count whole seconds.
constexpr seconds kSlack{2};

// Whoever copies a folder dates everything anew: right after the manifest comes the next file.
constexpr seconds kCopyGap{60};

// What one manifest says, as far as it can be understood.
struct Manifest {
  std::string name;  // of its file
  std::optional<Time> written;
  std::string unreadable;  // why; then nothing else is known
  std::optional<bool> complete;
  std::vector<std::string> because;          // of one that is not complete
  bool is_torch = false;                     // of `ait llm dump --probe torch`
  std::set<std::string> processes;           // "4711", or "4711_1" where that was taken
  std::map<std::string, std::string> ranks;  // of these, where it says so
  std::set<std::string> pids;                // of manifests that do not tell such processes apart

  bool names(const Rank& rank) const {
    return processes.contains(rank.name.substr(rank.name.find('_') + 1)) || pids.contains(rank.pid);
  }
};

std::string text_of(const simdjson::simdjson_result<simdjson::dom::element>& value) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

void read_processes(const simdjson::dom::element& root, Manifest& out) {
  simdjson::dom::array processes;
  if (root["processes"].get(processes) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element process : processes) {
    if (std::string name = text_of(process["name"]); !name.empty()) {
      if (uint64_t rank = 0; process["rank"].get(rank) == simdjson::SUCCESS)
        out.ranks[name] = std::to_string(rank);
      out.processes.insert(std::move(name));
    } else if (uint64_t pid = 0; process["pid"].get(pid) == simdjson::SUCCESS) {
      out.pids.insert(std::to_string(pid));
    }
  }
}

void read_reasons(const simdjson::dom::element& root, Manifest& out) {
  simdjson::dom::array reasons;
  if (root["incomplete_because"].get(reasons) == simdjson::SUCCESS)
    for (const simdjson::dom::element reason : reasons)
      if (std::string_view text; reason.get(text) == simdjson::SUCCESS)
        out.because.emplace_back(text);
  if (root["errors"].get(reasons) == simdjson::SUCCESS)
    for (const simdjson::dom::element error : reasons)
      if (std::string text = text_of(error["reason"]); !text.empty())
        out.because.push_back("an error while recording: " + text);
  uint64_t submitted = 0;
  uint64_t written = 0;
  if (root["tensors"]["submitted"].get(submitted) == simdjson::SUCCESS &&
      root["tensors"]["written"].get(written) == simdjson::SUCCESS && written < submitted) {
    const std::string first = text_of(root["tensors"]["first_failure"]);
    out.because.push_back(std::to_string(submitted - written) + " of " + std::to_string(submitted) +
                          " tensors were not stored" + (first.empty() ? "" : ": " + first));
  }
}

void read_state(const simdjson::dom::element& root, Manifest& out) {
  bool complete = false;
  if (root["complete"].get(complete) == simdjson::SUCCESS) {
    out.complete = complete;
  } else if (const std::string state = text_of(root["state"]); !state.empty()) {
    out.complete = state == "complete";
    if (state == "recording" || state == "running")
      out.because.insert(out.because.begin(),
                         "the recording has not ended: its process was killed, or still runs");
  }
  // A recorder that says "complete" may mean no more than that it ended in order.
  if (!out.because.empty()) out.complete = false;
}

Manifest read_manifest(const std::string& folder, const std::string& name) {
  Manifest out;
  out.name = name;
  const std::string path = folder + "/" + name;
  std::error_code error;
  if (const Time time = fs::last_write_time(path, error); !error) out.written = time;
  const auto text = read_text(path, kMaxManifestBytes);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (!text) {
    out.unreadable = text.error().message();
  } else if (parser.parse(*text).get(root) != simdjson::SUCCESS || !root.is_object()) {
    out.unreadable = "is not JSON";
  } else {
    read_processes(root, out);
    read_reasons(root, out);
    read_state(root, out);
    out.is_torch = text_of(root["options"]["probe"]) == "torch";
  }
  return out;
}

// manifest.json and those of earlier runs, the latest first.
std::vector<Manifest> manifests_in(const std::string& root) {
  std::vector<Manifest> out;
  const auto entries = list_folder(root);
  if (!entries) return out;
  const std::string_view file = record::kManifestFile;
  const std::string_view stem = file.substr(0, file.rfind('.'));
  for (const Entry& entry : *entries)
    if (!entry.is_folder && entry.name.ends_with(".json") &&
        (entry.name == file || entry.name.starts_with(std::string(stem) + "_")))
      out.push_back(read_manifest(root, entry.name));
  std::sort(out.begin(), out.end(),
            [](const Manifest& a, const Manifest& b) { return a.written > b.written; });
  return out;
}

bool has_scratch(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator at(root, error); !error && at != fs::directory_iterator();
       at.increment(error))
    if (at->path().filename().native().starts_with(kScratchStem)) return true;
  return false;
}

// When a file of each round of a rank was written.
std::vector<Time> times_of(const Recording& recording, size_t rank) {
  std::vector<Time> out;
  for (size_t round = 0; round < recording.rounds.size(); ++round) {
    const auto found = recording.kept.find(rank * recording.rounds.size() + round);
    if (found == recording.kept.end()) continue;
    for (const Recording::UnitContent& unit : found->second) {
      const std::vector<uint32_t>& slots = recording.contents[unit.content];
      if (slots.empty()) continue;
      std::error_code error;
      const Time time =
          fs::last_write_time(recording.record(rank, round, slots.front()).path, error);
      if (!error) out.push_back(time);
      break;
    }
  }
  return out;
}

// Tensors that were written after the manifest are none that it speaks of.
bool is_older(const Manifest& manifest, const std::vector<Time>& tensors) {
  if (!manifest.written || tensors.empty()) return false;
  const auto [oldest, newest] = std::minmax_element(tensors.begin(), tensors.end());
  const bool some_are_later = *oldest <= *manifest.written && *newest > *manifest.written + kSlack;
  return some_are_later || *oldest > *manifest.written + kCopyGap;
}

class Judge {
 public:
  // What a manifest says of a rank.
  void hear(const Manifest& manifest, const Recording& recording, size_t rank,
            const std::string& where) {
    if (!manifest.unreadable.empty()) {
      add(where + " " + manifest.unreadable +
          ", so it is not known whether everything was recorded");
      unknown_ = true;
      return;
    }
    heard_ = true;
    for (const std::string& reason : manifest.because) add(reason);
    if (manifest.complete == false && manifest.because.empty())
      add(where + " says that not all was recorded");
    if (is_older(manifest, times_of(recording, rank)))
      add(where + " is older than tensors beside it, so these are from another run");
  }

  void add(std::string doubt) {
    auto& doubts = out_.doubts;
    if (std::find(doubts.begin(), doubts.end(), doubt) == doubts.end())
      doubts.push_back(std::move(doubt));
  }

  void leave_open() { unknown_ = true; }

  Completeness finish() {
    if (!out_.doubts.empty() && !unknown_)
      out_.complete = false;
    else if (heard_ && !unknown_)
      out_.complete = true;
    return std::move(out_);
  }

 private:
  Completeness out_;
  bool heard_ = false;
  bool unknown_ = false;
};

// Of the manifests of `ait llm dump` that one which names a rank's process.
const Manifest* manifest_of(const std::vector<Manifest>& manifests, const Rank& rank) {
  const auto found = std::find_if(manifests.begin(), manifests.end(),
                                  [&](const Manifest& each) { return each.names(rank); });
  return found == manifests.end() ? nullptr : &*found;
}

}  // namespace

Completeness judge_library_dump(const Recording& recording) {
  std::vector<Manifest> manifests = manifests_in(recording.root);
  std::erase_if(manifests, [](const Manifest& each) { return each.is_torch; });
  const bool unfinished = has_scratch(recording.root);
  Judge judge;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    const Rank& each = recording.ranks[rank];
    if (const Manifest* manifest = manifest_of(manifests, each)) {
      judge.hear(*manifest, recording, rank, manifest->name);
    } else if (!manifests.empty() && !manifests.front().unreadable.empty()) {
      judge.hear(manifests.front(), recording, rank, manifests.front().name);
    } else if (!manifests.empty() || unfinished) {
      judge.add("no manifest names the process of " + each.name +
                ": `ait llm dump` was killed, or still runs");
    } else {
      judge.leave_open();  // of another tool
    }
  }
  return judge.finish();
}

Completeness judge_torch_dump(const Recording& recording) {
  const std::vector<Manifest> launchers = manifests_in(recording.root);
  Judge judge;
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    const Rank& each = recording.ranks[rank];
    std::error_code ignored;
    if (!fs::exists(each.path + "/" + record::kManifestFile, ignored)) {
      judge.leave_open();  // of another tool
      continue;
    }
    judge.hear(read_manifest(each.path, record::kManifestFile), recording, rank,
               each.name + "/" + record::kManifestFile);
    const Manifest* launcher = manifest_of(launchers, each);
    if (launcher != nullptr && launcher->is_torch)
      judge.hear(*launcher, recording, rank, launcher->name);
  }
  return judge.finish();
}

std::map<std::string, std::string> ranks_in_manifests(const std::string& root) {
  std::map<std::string, std::string> out;
  // The latest first, and a name is taken once.
  for (const Manifest& manifest : manifests_in(root))
    out.insert(manifest.ranks.begin(), manifest.ranks.end());
  return out;
}

}  // namespace ait::capture
