#include "capture/ge_folders.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "capture/compiled_run.h"
#include "capture/dump_folders.h"
#include "capture/ge_names.h"
#include "capture/listing.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRootFolder = "msit_ge_dump";
constexpr std::string_view kOldRootStem = "dump_";  // and a time: "dump_20241114_113410"

// What lies in a folder, listed once: there may be a hundred thousand files.
struct Listed {
  std::vector<std::string> folders;  // in natural order
  std::vector<std::string> texts;    // names of graphs' texts
};

Listed list(const std::string& path) {
  Listed out;
  if (auto entries = list_folder(path))
    for (Entry& entry : *entries) {
      if (entry.is_folder)
        out.folders.push_back(std::move(entry.name));
      else if (parse_ge_text_name(entry.name))
        out.texts.push_back(std::move(entry.name));
    }
  std::sort(out.folders.begin(), out.folders.end(), natural_less);
  return out;
}

std::vector<std::string> folders_in(const std::string& path) { return list(path).folders; }

// 14 digits, "20240125031118"; tools differ.
bool is_time(const std::string& name) {
  constexpr size_t kFewest = 12;
  constexpr size_t kMost = 17;
  return is_number(name) && name.size() >= kFewest && name.size() <= kMost;
}

// In many folders one string less counts.
std::string inside(const std::string& folder, std::string_view name) {
  std::string out = folder;
  out += '/';
  out += name;
  return out;
}

bool is_old_root(std::string_view name) {
  if (!name.starts_with(kOldRootStem)) return false;
  name.remove_prefix(kOldRootStem.size());
  const size_t underscore = name.find('_');
  return underscore != std::string_view::npos && is_number(name.substr(0, underscore)) &&
         is_number(name.substr(underscore + 1));
}

// The first of the folders in a folder that a name may be.
template <typename Test>
std::string first_of(const std::string& path, const std::vector<std::string>& folders, Test fits) {
  for (const std::string& name : folders)
    if (fits(name)) return inside(path, name);
  return {};
}

// {time}/{device}/{model}/{model id}/{token}
bool are_sessions(const std::string& path, const std::vector<std::string>& folders) {
  const auto any = [](const std::string&) { return true; };
  const auto number = [](const std::string& name) { return is_number(name); };
  std::string at = first_of(path, folders, is_time);
  if (!at.empty()) at = first_of(at, folders_in(at), number);
  if (!at.empty()) at = first_of(at, folders_in(at), any);
  if (!at.empty()) at = first_of(at, folders_in(at), number);
  return !at.empty() && !first_of(at, folders_in(at), number).empty();
}

bool holds_sessions(const std::string& path) { return are_sessions(path, folders_in(path)); }

bool is_root(const std::string& path, const Listed& listed) {
  const auto is_rank = [&](const std::string& name) {
    return rank_of_folder(name) && holds_sessions(inside(path, name));
  };
  return !listed.texts.empty() || are_sessions(path, listed.folders) ||
         !first_of(path, listed.folders, is_rank).empty();
}

// What a path may mean: the dump itself, or what holds it. Several of version 1.0 may lie together.
std::vector<std::string> roots_of(const std::string& path) {
  const Listed listed = list(path);
  if (is_root(path, listed)) return {path};
  const auto in_path = [&](std::string_view name) { return inside(path, name); };
  if (is_root(in_path(kRootFolder), list(in_path(kRootFolder)))) return {in_path(kRootFolder)};
  std::vector<std::string> out;
  for (const std::string& name : listed.folders)
    if (is_old_root(name) && is_root(in_path(name), list(in_path(name))))
      out.push_back(in_path(name));
  return out;
}

class Finder {
 public:
  Result<GeFolders> find(const std::string& given) {
    const std::string path = normal_path(given);
    const std::string name = fs::path(path).filename().native();
    if (rank_of_folder(name) && holds_sessions(path)) {
      out_.root = fs::path(path).parent_path().native();
      add_rank_folder(path, name);
    } else {
      const std::vector<std::string> roots = roots_of(path);
      if (roots.size() > 1)
        return fail(Error(ErrorCode::kUsage, given)
                    << "holds several GE dumps ("
                    << printable(fs::path(roots[0]).filename().native()) << ", "
                    << printable(fs::path(roots[1]).filename().native())
                    << (roots.size() > 2 ? ", …" : "") << "); name one of them");
      if (roots.empty())
        return fail(Error(ErrorCode::kUsage, given)
                    << "is no GE dump: expected dynamo_original_graph_….txt and "
                       "{time}/{device}/{model}/{model id}/{token} below it or below "
                       "worldsize…_global_rank…");
      out_.root = roots[0];
      add_ranks();
    }
    std::sort(out_.folders.begin(), out_.folders.end(), [](const auto& a, const auto& b) {
      return std::tie(a.rank, a.token, a.below) < std::tie(b.rank, b.token, b.below);
    });
    find_texts();
    return std::move(out_);
  }

 private:
  void add_ranks() {
    std::map<std::string, std::string> newest;  // rank, its folder
    for (const std::string& name : folders_in(out_.root)) {
      const auto rank = rank_of_folder(name);
      if (!rank || !holds_sessions(inside(out_.root, name))) continue;
      auto [place, is_new] = newest.try_emplace(*rank, name);
      if (is_new) continue;
      // In natural order: the largest world comes last.
      out_.problems.push_back(Error(ErrorCode::kUsage, inside(out_.root, place->second))
                              << "is not used: " << printable(name)
                              << " is the same rank; name a rank's folder to choose another");
      place->second = name;
    }
    std::vector<std::string> ranks;
    ranks.reserve(newest.size());
    for (const auto& [rank, folder] : newest) ranks.push_back(rank);
    std::sort(ranks.begin(), ranks.end(), natural_less);
    for (const std::string& rank : ranks)
      add_rank_folder(inside(out_.root, newest[rank]), newest[rank]);
    if (ranks.empty()) add_sessions(out_.root, {});
  }

  void add_rank_folder(const std::string& path, const std::string& name) {
    add_sessions(path, Rank{path, name, *rank_of_folder(name), {}});
  }

  // The sessions of a rank's folder, or of a dump without any, where each device is a rank.
  void add_sessions(const std::string& path, const std::optional<Rank>& rank) {
    std::map<std::string, std::vector<std::string>> sessions;  // device, its times
    for (const std::string& time : folders_in(path))
      if (is_time(time))
        for (const std::string& device : folders_in(inside(path, time)))
          if (is_number(device)) sessions[device].push_back(time);
    std::vector<std::string> devices;
    devices.reserve(sessions.size());
    for (const auto& [device, times] : sessions) devices.push_back(device);
    std::sort(devices.begin(), devices.end(), natural_less);
    for (const std::string& device : devices) {
      Rank added = rank.value_or(Rank{path, device, device, {}});
      if (rank && devices.size() > 1) added.device += "." + device;
      out_.ranks.push_back(std::move(added));
      add_device(path, device, sessions[device]);
    }
  }

  // A later session replaces what an earlier one has of the same execution.
  void add_device(const std::string& path, const std::string& device,
                  const std::vector<std::string>& times) {
    std::map<std::tuple<std::string, std::string, uint64_t>, GeTokenFolder> newest;
    std::set<std::string> replaced;
    for (const std::string& time : times) {
      const std::string start = inside(time, device);
      for (const std::string& model : folders_in(inside(path, start)))
        for (const std::string& id : folders_in(inside(inside(path, start), model))) {
          if (!is_number(id)) continue;
          const std::string below = inside(inside(start, model), id);
          for (const std::string& token : folders_in(inside(path, below))) {
            if (!is_number(token)) continue;
            const uint64_t number = time_of(token);
            GeTokenFolder folder{out_.ranks.size() - 1, time, model, id, number,
                                 inside(below, token)};
            auto [place, is_new] = newest.try_emplace({model, id, number}, folder);
            if (is_new) continue;
            replaced.insert(place->second.time);
            place->second = std::move(folder);
          }
        }
    }
    for (const std::string& time : replaced)
      out_.problems.push_back(Error(ErrorCode::kUsage, inside(path, time))
                              << "is not used for tokens that a later session has, too; use a "
                                 "new folder for each dump");
    for (auto& [key, folder] : newest) out_.folders.push_back(std::move(folder));
  }

  void find_texts() {
    std::map<std::pair<uint64_t, std::string>, std::pair<uint64_t, std::string>> newest;
    for (const std::string& text_name : list(out_.root).texts) {
      const auto name = parse_ge_text_name(text_name);
      const std::pair text(name->time, text_name);
      auto [place, is_new] = newest.try_emplace({name->graph, name->rank}, text);
      if (is_new) continue;
      out_.problems.push_back(Error(ErrorCode::kUsage, out_.root)
                              << "holds the text of graph " << name->graph
                              << " twice; the newer one is taken: "
                              << printable(std::max(place->second, text).second));
      place->second = std::max(place->second, text);
    }
    for (const auto& [key, text] : newest)
      out_.texts.push_back({key.first, key.second, inside(out_.root, text.second)});
  }

  GeFolders out_;
};

}  // namespace

bool is_ge_folder(const std::string& given) {
  const std::string path = normal_path(given);
  if (rank_of_folder(fs::path(path).filename().native()) && holds_sessions(path)) return true;
  return !roots_of(path).empty();
}

Result<GeFolders> find_ge_folders(const std::string& path) { return Finder().find(path); }

}  // namespace ait::capture
