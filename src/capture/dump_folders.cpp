#include "capture/dump_folders.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "base/parallel.h"
#include "capture/folder_index.h"
#include "capture/listing.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kDumpNames = {record::kDumpFolder,
                                                        record::kMsitDumpFolder};
constexpr std::string_view kThreadStem = "thread_";
constexpr std::string_view kNewestDumpName = "atb_dump_data";
constexpr std::array<std::string_view, 3> kTopologyFolders = {record::kModelFolder,
                                                              record::kLayerFolder, "info/model"};

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  if (const auto entries = list_folder(path))
    for (const Entry& entry : *entries)
      if (entry.is_folder) names.push_back(entry.name);
  return names;
}

// "0_41210" as {"0", "41210"}; a third part is a counter.
std::pair<std::string, std::string> halves(const std::string& name) {
  const size_t first = name.find('_');
  if (first == std::string::npos) return {name, ""};
  const size_t second = name.find('_', first + 1);
  return {name.substr(0, first), name.substr(first + 1, second - first - 1)};
}

// Folders below model/ and layer/ are named after processes.
std::set<std::string> known_pids(const std::string& root) {
  std::set<std::string> pids;
  for (const std::string_view folder : kTopologyFolders)
    for (const std::string& name : folders_in(root + "/" + std::string(folder))) pids.insert(name);
  return pids;
}

// Newer tools write {device}_{pid}, older ones {pid}_{device}. Where no topology names the process,
// the smaller number is the device: process numbers start above the cards of any machine but in
// containers, where both readings give the same order of ranks.
Rank rank_of(const std::string& folder, const std::string& name,
             const std::set<std::string>& pids) {
  // The oldest tools name the process alone, and each process was a rank.
  if (const std::string process = lone_process(name); !process.empty())
    return {folder.empty() ? name : folder + "/" + name, name, process, process};
  auto [device, pid] = halves(name);
  bool swapped = !is_number(pid);
  if (is_number(device) && is_number(pid)) {
    if (pids.contains(device) != pids.contains(pid)) {
      swapped = pids.contains(device);
    } else {
      swapped = natural_less(pid, device);
    }
  }
  if (swapped) std::swap(device, pid);
  return {folder.empty() ? name : folder + "/" + name, name, device, pid};
}

struct KnownRank {
  Rank rank;
  FolderFacts facts;
};

// Leaves out what earlier processes recorded on a device that a later one used, too.
std::vector<KnownRank> latest_of_each_device(std::vector<KnownRank> all,
                                             std::vector<Error>& problems) {
  struct Process {
    std::string name;
    std::string folder;
    fs::file_time_type written;
  };
  const auto name_of_process = [](const KnownRank& each) {
    return each.facts.process.empty() ? "/" + each.rank.name : each.facts.process;
  };
  std::map<std::string, Process> latest;  // of each device
  for (const KnownRank& each : all) {
    std::error_code ignored;
    const auto written = fs::last_write_time(each.rank.path, ignored);
    const auto [place, is_new] = latest.try_emplace(
        each.rank.device, Process{name_of_process(each), each.rank.name, written});
    if (!is_new && written > place->second.written)
      place->second = {name_of_process(each), each.rank.name, written};
  }
  std::vector<KnownRank> kept;
  for (KnownRank& each : all) {
    const Process& last = latest.at(each.rank.device);
    if (name_of_process(each) == last.name) {
      kept.push_back(std::move(each));
    } else {
      problems.push_back(Error(ErrorCode::kUsage, each.rank.path)
                         << "is not used: " << printable(last.folder)
                         << " is a later run on the same device; name a rank's folder to choose "
                            "another");
    }
  }
  return kept;
}

// A process has a folder for each of its models. The first model of a kind is the same on all ranks,
// and so is the second one.
std::vector<std::vector<Rank>> by_model(std::vector<KnownRank> all) {
  std::ranges::sort(all, [](const KnownRank& a, const KnownRank& b) {
    if (a.facts.started != b.facts.started) return a.facts.started < b.facts.started;
    if (natural_less(a.rank.name, b.rank.name)) return true;
    return !natural_less(b.rank.name, a.rank.name) && a.rank.path < b.rank.path;
  });
  std::map<std::pair<std::string, std::string>, size_t> seen;  // of a model on a device
  std::map<std::pair<std::string, size_t>, size_t> places;
  std::vector<std::vector<Rank>> models;
  for (KnownRank& each : all) {
    const size_t which = seen[{each.facts.model, each.rank.device}]++;
    const auto [place, is_new] = places.try_emplace({each.facts.model, which}, models.size());
    if (is_new) models.emplace_back();
    models[place->second].push_back(std::move(each.rank));
  }
  for (std::vector<Rank>& ranks : models)
    std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) {
      return a.device != b.device ? natural_less(a.device, b.device) : natural_less(a.name, b.name);
    });
  return models;
}

void sort_out(RankFolders& found, const FolderRules& rules) {
  std::vector<KnownRank> all;
  for (Rank& rank : found.ranks) {
    KnownRank& each = all.emplace_back(KnownRank{std::move(rank), {}});
    if (rules.look_inside) each.facts = rules.look_inside(each.rank);
  }
  found.more_models = by_model(latest_of_each_device(std::move(all), found.problems));
  found.ranks.clear();
  if (found.more_models.empty()) return;
  found.ranks = std::move(found.more_models.front());
  found.more_models.erase(found.more_models.begin());
}

// Ranks directly inside a folder.
RankFolders ranks_in(const std::string& folder, const std::string& root, const FolderRules& rules) {
  RankFolders found;
  found.root = root;
  const std::set<std::string> pids = known_pids(root);
  for (const std::string& name : folders_in(folder)) {
    if (!rules.is_rank(name)) continue;
    Rank rank = rank_of(folder, name, pids);
    if (rules.holds_rounds(rank.path)) found.ranks.push_back(std::move(rank));
  }
  return found;
}

bool is_tensors_name(const std::string& name, const FolderRules& rules) {
  return std::find(rules.tensors_folders.begin(), rules.tensors_folders.end(), name) !=
         rules.tensors_folders.end();
}

std::string parent_of(const std::string& path) { return fs::path(path).parent_path().native(); }
std::string name_of(const std::string& path) { return fs::path(path).filename().native(); }

// The dump that a tensors folder belongs to.
std::string root_of(const std::string& tensors, const FolderRules& rules) {
  return is_tensors_name(name_of(tensors), rules) ? parent_of(tensors) : tensors;
}

RankFolders one_rank(const std::string& path, const FolderRules& rules) {
  RankFolders found;
  const std::string tensors = parent_of(path);
  found.root = root_of(tensors, rules);
  found.ranks.push_back(rank_of(tensors, name_of(path), known_pids(found.root)));
  found.ranks.back().path = path;
  return found;
}

struct ListedRound {
  struct Unit {
    std::string name;
    bool is_folder;
    FolderIndex::Listing listing;
  };
  std::vector<Unit> units;
  std::vector<Error> problems;
};

ListedRound list_round(const FolderIndex& index, const std::string& rank, const std::string& name,
                       const ReadRoundFile& read_file) {
  ListedRound out;
  const std::string path = rank + "/" + name;
  const auto units = list_folder(path);
  if (!units) {
    out.problems.push_back(units.error());
    return out;
  }
  const FolderIndex::Round round(index, name);
  for (const Entry& unit : *units) {
    FolderIndex::Listing listing;
    if (unit.is_folder)
      listing = round.list(unit.name, out.problems);
    else if (read_file)
      listing.files = read_file(path + "/" + unit.name, out.problems);
    if (unit.is_folder || !listing.files.empty())
      out.units.push_back({unit.name, unit.is_folder, std::move(listing)});
  }
  return out;
}

RankFolders find_in(const std::string& path, const FolderRules& rules) {
  for (const std::string_view name : rules.tensors_folders)
    if (auto found = ranks_in(path + "/" + std::string(name), path, rules); !found.ranks.empty())
      return found;
  return ranks_in(path, root_of(path, rules), rules);
}

}  // namespace

bool is_dump_name(std::string_view name) {
  return name == kNewestDumpName ||
         std::any_of(kDumpNames.begin(), kDumpNames.end(), [&](std::string_view known) {
           return name == known || (name.starts_with(known) && name[known.size()] == '_');
         });
}

std::string normal_path(const std::string& given) {
  std::error_code ignored;
  std::string path = fs::absolute(given, ignored).lexically_normal().native();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string lone_process(std::string_view name) {
  if (name.starts_with(kThreadStem)) name.remove_prefix(kThreadStem.size());
  return is_number(name) ? std::string(name) : std::string();
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_numbered(std::string_view name) {
  const size_t underscore = name.find('_');
  return underscore != std::string_view::npos && underscore + 1 < name.size() &&
         is_number(name.substr(0, underscore));
}

Result<RankFolders> find_ranks(const std::string& given, const FolderRules& rules) {
  const std::string path = normal_path(given);
  RankFolders found;
  if (rules.is_round(path)) {
    found = one_rank(parent_of(path), rules);
    found.only_round = name_of(path);
    return found;
  }
  if (rules.holds_rounds(path)) return one_rank(path, rules);
  found = find_in(path, rules);
  if (found.ranks.empty()) {
    std::vector<std::string> dumps;
    for (const std::string& name : folders_in(path)) {
      if (!is_dump_name(name)) continue;
      const fs::path dump = fs::path(path) / name;
      auto inside = find_in(dump.native(), rules);
      // dump_path="./ait_dump" gives ait_dump/ait_dump.
      if (inside.ranks.empty())
        for (const std::string& again : folders_in(dump.native()))
          if (inside.ranks.empty() && is_dump_name(again))
            inside = find_in((dump / again).native(), rules);
      if (inside.ranks.empty()) continue;
      dumps.push_back(name);
      found = std::move(inside);
    }
    if (dumps.size() > 1)
      return fail(Error(ErrorCode::kUsage, given)
                  << "holds several dumps (" << printable(dumps[0]) << ", " << printable(dumps[1])
                  << (dumps.size() > 2 ? ", …" : "") << "); name one of them");
  }
  sort_out(found, rules);
  return found;
}

void list_rounds(Recording& recording, RecordingBuilder& builder, const std::string& only_round,
                 const std::function<bool(const std::string& name)>& is_round_name,
                 const ReadRoundFile& read_file) {
  std::vector<std::pair<size_t, std::string>> work;  // rank, round
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    auto entries = list_folder(recording.ranks[rank].path);
    if (!entries) {
      recording.problems.push_back(entries.error());
      continue;
    }
    for (const Entry& entry : *entries)
      if (entry.is_folder &&
          (only_round.empty() ? is_round_name(entry.name) : entry.name == only_round))
        work.emplace_back(rank, entry.name);
  }
  for (const auto& [rank, round] : work) recording.rounds.push_back(round);
  std::sort(recording.rounds.begin(), recording.rounds.end(), natural_less);
  recording.rounds.erase(std::unique(recording.rounds.begin(), recording.rounds.end()),
                         recording.rounds.end());
  std::map<std::string, size_t> round_index;
  for (size_t i = 0; i < recording.rounds.size(); ++i) round_index[recording.rounds[i]] = i;

  // One stretch of rounds at a time, so that their texts need not all be in memory at once.
  constexpr size_t kAtOnce = 32;
  std::vector<ListedRound> listed;
  std::map<size_t, FolderIndex> indexes;  // of the ranks of such a stretch
  for (size_t first = 0; first < work.size(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, work.size() - first);
    for (size_t i = 0; i < count; ++i)
      indexes.try_emplace(work[first + i].first, recording.ranks[work[first + i].first].path);
    listed.assign(count, {});
    parallel_for(count, 0, [&](size_t i) {
      const auto& [rank, round] = work[first + i];
      listed[i] = list_round(indexes.at(rank), recording.ranks[rank].path, round, read_file);
    });
    for (size_t i = 0; i < count; ++i) {
      const auto& [rank, round] = work[first + i];
      for (ListedRound::Unit& unit : listed[i].units) {
        builder.add(rank, round_index[round], unit.name, unit.listing.files);
        if (unit.is_folder) indexes.at(rank).keep(round, unit.name, std::move(unit.listing));
      }
      for (Error& problem : listed[i].problems) recording.problems.push_back(std::move(problem));
    }
    // Of a part of the rounds nothing is remembered: that would be in place of all.
    while (!indexes.empty() &&
           (first + count == work.size() || indexes.begin()->first < work[first + count].first)) {
      if (only_round.empty()) indexes.begin()->second.save();
      indexes.erase(indexes.begin());
    }
  }
}

}  // namespace ait::capture
