#include "watch/follow.h"

#include <fmt/format.h>
#include <signal.h>
#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text_file.h"
#include "capture/listing.h"
#include "capture/torch_dump.h"
#include "formats/registry.h"
#include "metrics/bound.h"
#include "metrics/compare.h"
#include "record/dump_names.h"

namespace ait::watch {

namespace fs = std::filesystem;

// What is known of a tensor's numbers.
struct Known {
  std::optional<metrics::Side> side;
  bool is_written = true;  // and so rounded
  double rounding = 0;
  bool has_nan = false;
  bool has_inf = false;
};

namespace {

constexpr size_t kMaxManifestBytes = size_t{256} << 20;  // as capture reads them
constexpr size_t kMaxProblems = 100;

// What a manifest says of a recording at this moment.
struct Manifest {
  std::string state;  // "" where there is none
  bool process_is_gone = false;
  std::set<uint64_t> under_way;
  std::optional<uint64_t> last_ended;

  bool has_ended() const { return state != "recording" || process_is_gone; }
};

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Manifest read_manifest(const std::string& folder) {
  Manifest out;
  const auto text = read_text(folder + "/" + record::kManifestFile, kMaxManifestBytes);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (!text || parser.parse(*text).get(root) != simdjson::SUCCESS) return out;
  std::string_view word;
  if (root["state"].get(word) == simdjson::SUCCESS) out.state = word;
  int64_t pid = 0;
  if (out.state == "recording" && root["host"].get(word) == simdjson::SUCCESS &&
      word == host_name() && root["pid"].get(pid) == simdjson::SUCCESS && pid > 0)
    out.process_is_gone = ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
  simdjson::dom::object rounds;
  if (root["rounds"].get(rounds) != simdjson::SUCCESS) return out;
  for (const auto& [name, round] : rounds) {
    const auto number = number_of(name);
    if (!number || round["state"].get(word) != simdjson::SUCCESS) continue;
    if (word == "finished" || word == "raised")
      out.last_ended = std::max(out.last_ended.value_or(0), *number);
    else
      out.under_way.insert(*number);
  }
  return out;
}

Known known_of(const capture::RoundTensor& tensor) {
  Known out;
  if (!tensor.file.empty()) {
    const auto loaded = formats::load_single(tensor.file);
    if (!loaded || loaded->elements() == 0) return out;
    out.side = metrics::statistics(loaded->view(), 1);
    out.is_written = false;
    out.has_nan = out.side->nan > 0;
    out.has_inf = out.side->inf() > 0;
    return out;
  }
  if (!tensor.description.statistics) return out;
  const auto& from = *tensor.description.statistics;
  metrics::Side side;
  side.elements = count_elements(tensor.description.shape).value_or(0);
  side.maximum = from.maximum;
  side.minimum = from.minimum;
  side.mean = from.mean;
  side.l2_norm = from.l2_norm;
  out.side = side;
  out.rounding = from.rounding;
  const Values values = Values::of(side.maximum, side.minimum, side.l2_norm);
  out.has_nan = values.has_nan || from.nan.value_or(0) > 0;
  out.has_inf = values.has_inf || from.inf.value_or(0) > 0;
  return out;
}

bool is_output(const capture::RoundTensor& tensor) { return tensor.tensor.starts_with("output"); }

// Of a tensor that was measured the shape is not at hand; its size serves.
std::string shape_text(const capture::RoundTensor& tensor, const Known& known) {
  if (!tensor.file.empty()) return std::to_string(known.side->elements);
  std::string out;
  for (const int64_t size : tensor.description.shape) out += std::to_string(size) + ",";
  return out;
}

metrics::KnownSide bound_of(const Known& known) {
  return {*known.side, known.is_written ? metrics::kWrittenRounding : 0, known.rounding};
}

}  // namespace

struct Follower::Folder {
  Folder(std::string folder_path, std::string folder_name, const std::vector<Condition>& conditions)
      : path(std::move(folder_path)), name(std::move(folder_name)), trigger(conditions, 0) {}

  const std::string path;
  const std::string name;
  Trigger trigger;
  size_t events_told = 0;
  std::string golden;  // the folder of the golden run that belongs to this one
  std::set<std::tuple<std::string, std::string, std::string>> away;  // what was told of it
  std::string state;
  bool has_ended = false;  // in this pass
  bool had_ended = false;  // in the pass before, too: somebody may go on under another name
  uint64_t rounds = 0;
  std::optional<uint64_t> last_round;
  uint64_t listed_round = 0;  // what lay in the folder of this round at the last pass
  std::string listed;
};

Follower::Follower(FollowOptions options) : options_(std::move(options)) {}
Follower::~Follower() = default;

void Follower::problem(const Error& error) {
  const auto same = [&](const Error& other) { return other.text() == error.text(); };
  if (problems_.size() < kMaxProblems && std::none_of(problems_.begin(), problems_.end(), same))
    problems_.push_back(error);
}

Result<void> Follower::find_golden() {
  if (options_.golden.empty() || !golden_.empty()) return {};
  auto found = capture::find_torch_folders(options_.golden);
  if (!found) return fail(found.error());
  if (found->empty())
    return fail(Error(ErrorCode::kUsage, options_.golden)
                << "is not a dump of a torch model, which --golden must be");
  golden_ = std::move(*found);
  return {};
}

// Ranks are the same if their devices are; a golden run of one process serves for all.
Follower::Folder& Follower::folder_of(const capture::Rank& rank) {
  std::unique_ptr<Folder>& folder = folders_[rank.path];
  if (folder) return *folder;
  folder = std::make_unique<Folder>(rank.path, rank.name, options_.conditions);
  const auto same = std::find_if(golden_.begin(), golden_.end(), [&](const capture::Rank& each) {
    return each.device == rank.device;
  });
  if (same != golden_.end())
    folder->golden = same->path;
  else if (golden_.size() == 1)
    folder->golden = golden_.front().path;
  return *folder;
}

Result<void> Follower::pass(bool live) {
  if (auto ready = find_golden(); !ready) return ready;
  std::error_code ignored;
  if (!fs::exists(options_.path, ignored))
    return fail(Error(ErrorCode::kNotFound, options_.path) << "there is no such folder");
  const auto found = capture::find_torch_folders(options_.path);
  if (!found) return fail(found.error());
  if (found->empty())
    return fail(
        Error(ErrorCode::kNotFound, options_.path)
        << "holds no recording of a torch model: expected torch_tensors/{device}_{pid} with "
           "model_tree.json in it");
  // A recording may go to another name, and is read anew there.
  std::erase_if(folders_, [&](const auto& each) {
    return std::none_of(found->begin(), found->end(),
                        [&](const capture::Rank& rank) { return rank.path == each.first; });
  });
  for (const capture::Rank& rank : *found) read_new(folder_of(rank), live);
  return {};
}

void Follower::read_new(Folder& folder, bool live) {
  const Manifest manifest = read_manifest(folder.path);
  folder.had_ended = folder.has_ended;
  folder.has_ended = manifest.has_ended();
  folder.state = manifest.process_is_gone ? "gone" : manifest.state;
  const auto entries = capture::list_folder(folder.path);
  if (!entries) return problem(entries.error());
  std::vector<uint64_t> rounds;
  for (const capture::Entry& entry : *entries)
    if (const auto number = number_of(entry.name);
        entry.is_folder && number && (!folder.last_round || *number > *folder.last_round))
      rounds.push_back(*number);
  std::sort(rounds.begin(), rounds.end());
  for (const uint64_t round : rounds) {
    if (live && !folder.has_ended) {
      if (!manifest.last_ended || round > *manifest.last_ended ||
          manifest.under_way.contains(round))
        return;
      // Tables are written a moment after the round has ended. Those of a round that is followed by
      // others have been.
      std::vector<Error> passing;
      std::string listed = capture::list_files(folder.path + "/" + std::to_string(round), passing);
      const bool is_last = round == rounds.back();
      const bool same = folder.listed_round == round && folder.listed == listed;
      folder.listed_round = round;
      folder.listed = std::move(listed);
      if (is_last && !same) return;
    }
    read_round(folder, round);
  }
}

void Follower::read_round(Folder& folder, uint64_t round) {
  std::vector<Error> problems;
  const auto tensors = capture::read_round_statistics(folder.path, std::to_string(round), problems);
  for (const Error& each : problems) problem(each);
  folder.last_round = round;
  ++folder.rounds;
  std::vector<Known> values(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_output(tensors[i])) continue;
    values[i] = known_of(tensors[i]);
    if (!values[i].side) continue;
    ++tensors_;
    const metrics::Side& side = *values[i].side;
    folder.trigger.see(
        round, tensors[i].module, tensors[i].tensor, shape_text(tensors[i], values[i]),
        {side.maximum, side.minimum, side.l2_norm, values[i].has_nan, values[i].has_inf});
  }
  folder.trigger.end_round(round);
  const std::vector<Event> events = folder.trigger.events();
  for (; folder.events_told < events.size(); ++folder.events_told) {
    const Event& event = events[folder.events_told];
    found({folder.name, event.round, event.module, event.tensor, false, event.condition,
           event.statistic, event.value, event.median});
  }
  compare(folder, round, tensors, values);
}

// Of each round the first tensor that is off: those after it follow from it. A tensor that stays off
// is told once.
void Follower::compare(Folder& folder, uint64_t round,
                       const std::vector<capture::RoundTensor>& tensors,
                       const std::vector<Known>& values) {
  std::error_code ignored;
  if (folder.golden.empty() || !fs::exists(folder.golden + "/" + std::to_string(round), ignored))
    return;
  std::vector<Error> problems;
  const auto golden =
      capture::read_round_statistics(folder.golden, std::to_string(round), problems);
  for (const Error& each : problems) problem(each);
  std::map<std::pair<std::string, std::string>, const capture::RoundTensor*> by_name;
  for (const capture::RoundTensor& each : golden) by_name[{each.module, each.tensor}] = &each;
  bool told = false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!values[i].side) continue;
    const auto same = by_name.find({tensors[i].module, tensors[i].tensor});
    if (same == by_name.end()) continue;
    const Known expected = known_of(*same->second);
    if (!expected.side || expected.side->elements != values[i].side->elements) continue;
    ++compared_;
    if (told) continue;
    Departure departure{folder.name, round, tensors[i].module, tensors[i].tensor, true};
    if (values[i].has_nan != expected.has_nan || values[i].has_inf != expected.has_inf) {
      departure.condition = values[i].has_nan != expected.has_nan ? "nan" : "inf";
      departure.statistic = "max";
      departure.value = values[i].side->maximum;
      departure.usual = expected.side->maximum;
    } else {
      const auto distance = metrics::distance_at_least(bound_of(expected), bound_of(values[i]));
      if (!distance || *distance <= options_.distance) continue;
      departure.condition = fmt::format("distance>{:g}", options_.distance);
      departure.statistic = "distance";
      departure.value = *distance;
    }
    told = true;
    if (folder.away.emplace(departure.module, departure.tensor, departure.condition).second)
      found(std::move(departure));
  }
}

void Follower::found(Departure departure) {
  auto& first = departure.from_golden ? first_of_golden_ : first_of_history_;
  if (!first || departure.round < first->round) first = departure;
  ++departures_;
  new_.push_back(std::move(departure));
}

bool Follower::has_ended() const {
  return !folders_.empty() && std::all_of(folders_.begin(), folders_.end(), [](const auto& each) {
    return each.second->has_ended && each.second->had_ended;
  });
}

std::vector<Departure> Follower::take_new() { return std::exchange(new_, {}); }

std::vector<FollowedFolder> Follower::folders() const {
  std::vector<FollowedFolder> out;
  for (const auto& [path, folder] : folders_)
    out.push_back({folder->name, folder->state, folder->rounds, folder->last_round});
  return out;
}

}  // namespace ait::watch
