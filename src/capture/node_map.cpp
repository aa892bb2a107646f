#include "capture/node_map.h"

#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "base/node_paths.h"
#include "base/text_file.h"
#include "capture/dump_folders.h"
#include "record/dump_names.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxMapBytes = size_t{16} << 20;
constexpr size_t kMaxJsonBytes = size_t{256} << 20;
// Larger than any number of ranks, and of digits alone: the number of a process in a view.
constexpr uint64_t kFirstProcess = 10000000;
constexpr std::array<std::string_view, 2> kRankFolders = {record::kTensorsFolder,
                                                          record::kTorchTensorsFolder};

std::optional<uint64_t> rank_in(const simdjson::dom::element& object) {
  uint64_t rank = 0;
  if (object["rank"].get(rank) != simdjson::SUCCESS) return std::nullopt;
  return rank;
}

Error cannot_list(const std::string& path, const std::error_code& error) {
  return Error(ErrorCode::kUnreadable, path) << "cannot be listed: " << error.message();
}

// Links and copies of all that a folder of this machine holds, below `into`.
Result<void> list_here(const NodeFolder& from, const fs::path& into, std::vector<Error>& problems) {
  std::error_code error;
  fs::create_directories(into, error);
  fs::recursive_directory_iterator at(from.folder, error);
  if (error)
    return fail(error == std::errc::no_such_file_or_directory
                    ? Error(ErrorCode::kNotFound, from.folder)
                          << "no such folder, which the map names for " << printable(from.node)
                    : cannot_list(from.folder, error));
  std::vector<std::pair<fs::path, fs::file_time_type>> times;
  for (; at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->path().filename().native().starts_with('.')) {
      at.disable_recursion_pending();
      continue;
    }
    const fs::path inside = at->path().lexically_relative(from.folder);
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) {
      fs::create_directories(into / inside, error);
      if (const auto time = at->last_write_time(ignored); !ignored)
        times.emplace_back(into / inside, time);
      // An iterator that cannot enter a folder would be at its end.
      if (const fs::directory_iterator inner(at->path(), ignored); ignored) {
        problems.push_back(cannot_list(from.node + ":" + at->path().native(), ignored));
        at.disable_recursion_pending();
      }
    } else if (inside.extension() != ".json" ||
               !fs::copy_file(at->path(), into / inside, ignored)) {
      // Whoever opens what cannot be copied says why.
      fs::remove(into / inside, ignored);
      const uint64_t bytes = at->file_size(ignored);
      fs::create_symlink(link_text({ignored ? 0 : bytes, from.node + ":" + at->path().native()}),
                         into / inside, error);
    }
    if (error) return fail(Error(ErrorCode::kUnwritable, into / inside) << error.message());
  }
  if (error) return fail(cannot_list(from.folder, error));
  for (const auto& [folder, time] : times) fs::last_write_time(folder, time, error);
  return {};
}

// Puts the listings of several folders together.
class Union {
 public:
  explicit Union(fs::path into) : into_(std::move(into)) {}

  // How many files are left out, because one of an earlier node has their place, and the first.
  size_t left_out() const { return left_out_; }
  const fs::path& first_left_out() const { return first_left_out_; }

  Result<void> add(const fs::path& listed) {
    const fs::path dump = dump_in(listed);
    if (dump.empty()) return add_all(listed, into_);
    processes_.clear();
    for (const std::string_view kind : kRankFolders)
      if (auto added = add_ranks(dump, kind); !added) return added;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(dump, error)) {
      const std::string name = entry.path().filename().native();
      if (std::find(kRankFolders.begin(), kRankFolders.end(), name) != kRankFolders.end()) continue;
      auto added = entry.is_directory(error) ? add_of_processes(entry.path())
                   : name.ends_with(".json") ? add_manifest(entry.path())
                                             : move(entry.path(), into_ / name);
      if (!added) return added;
    }
    return {};
  }

 private:
  struct Process {
    std::string name;  // in the view
    std::optional<uint64_t> rank;
  };

  // The folder that holds those of ranks: the path itself, or ait_dump in it. Empty: it is no dump.
  static fs::path dump_in(const fs::path& path, int deeper = 2) {
    std::error_code error;
    for (const std::string_view kind : kRankFolders)
      if (fs::is_directory(path / kind, error)) return path;
    if (deeper == 0) return {};
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.is_directory(error) && is_dump_name(entry.path().filename().native()))
        if (fs::path found = dump_in(entry.path(), deeper - 1); !found.empty()) return found;
    return {};
  }

  Result<void> move(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (fs::exists(fs::symlink_status(to, error))) {
      if (left_out_++ == 0) first_left_out_ = from;
      return {};
    }
    fs::rename(from, to, error);
    if (error) return fail(Error(ErrorCode::kUnwritable, to) << error.message());
    return {};
  }

  // Folders that both have are one folder.
  Result<void> add_all(const fs::path& from, const fs::path& to) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(to, error))) return move(from, to);
    for (const auto& entry : fs::directory_iterator(from, error)) {
      const fs::path target = to / entry.path().filename();
      auto added = entry.is_directory(error) && !entry.is_symlink(error)
                       ? add_all(entry.path(), target)
                       : move(entry.path(), target);
      if (!added) return added;
    }
    return {};
  }

  // Of a process of the dump that is being added, by its name there.
  Process& process(const std::string& name) {
    Process& found = processes_[name];
    if (found.name.empty()) found.name = std::to_string(next_process_++);
    return found;
  }

  Result<void> add_ranks(const fs::path& dump, std::string_view kind) {
    std::error_code error;
    if (!fs::is_directory(dump / kind, error)) return {};
    for (const auto& [name, rank] : ranks_said(dump)) process(name).rank = rank;
    std::vector<std::string> folders;
    std::map<std::string, size_t> devices;  // of each process
    for (const auto& entry : fs::directory_iterator(dump / kind, error)) {
      folders.push_back(entry.path().filename().native());
      ++devices[process_of(folders.back())];
    }
    std::sort(folders.begin(), folders.end(), natural_less);
    std::map<std::string, uint64_t> counted;  // devices whose rank nobody says
    for (const std::string& folder : folders) {
      const std::string name = process_of(folder);
      Process& owner = process(name);
      std::optional<uint64_t> rank = rank_in_folder(dump / kind / folder);
      if (!rank && devices[name] == 1) rank = owner.rank;
      // A model beside another of the same process keeps the number behind its name.
      uint64_t& next = next_rank_[std::string(kind)];
      // One after the other, processes may have had the same device.
      if (!rank) rank = counted.try_emplace(folder.substr(0, folder.find('_')), next).first->second;
      const std::string device = std::to_string(*rank);
      next = std::max(next, *rank + 1);
      if (auto moved = move(dump / kind / folder, into_ / kind / (device + "_" + owner.name));
          !moved)
        return moved;
    }
    return {};
  }

  // "77" of "0_77" and of "77".
  static std::string process_of(const std::string& folder) {
    return folder.substr(folder.find('_') + 1);
  }

  static std::optional<uint64_t> rank_in_folder(const fs::path& folder) {
    const auto text = read_text(folder / record::kManifestFile, kMaxJsonBytes);
    simdjson::dom::parser parser;
    simdjson::dom::element manifest;
    if (!text || parser.parse(*text).get(manifest) != simdjson::SUCCESS) return std::nullopt;
    return rank_in(manifest);
  }

  // What the manifests of a dump say of its processes.
  static std::map<std::string, std::optional<uint64_t>> ranks_said(const fs::path& dump) {
    std::map<std::string, std::optional<uint64_t>> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(dump, error)) {
      const std::string name = entry.path().filename().native();
      if (!name.starts_with("manifest") || !name.ends_with(".json")) continue;
      const auto text = read_text(entry.path().native(), kMaxJsonBytes);
      simdjson::dom::parser parser;
      simdjson::dom::array list;
      if (!text || parser.parse(*text)["processes"].get(list) != simdjson::SUCCESS) continue;
      for (const simdjson::dom::element each : list) {
        std::string_view of;
        if (each["name"].get(of) == simdjson::SUCCESS) out[std::string(of)] = rank_in(each);
      }
    }
    return out;
  }

  // "model/77" and the like.
  Result<void> add_of_processes(const fs::path& folder) {
    std::error_code error;
    const std::string kind = folder.filename().native();
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().native();
      const auto known = processes_.find(name);
      const std::string target = known == processes_.end() ? name : known->second.name;
      if (auto moved = add_all(entry.path(), into_ / kind / target); !moved) return moved;
    }
    return {};
  }

  // With the names that processes have in the view.
  Result<void> add_manifest(const fs::path& path) {
    auto text = read_text(path.native(), kMaxJsonBytes);
    if (!text) return {};
    for (const auto& [name, owner] : processes_)
      for (const char* blank : {" ", ""}) {
        const std::string said = std::string("\"name\":") + blank + "\"" + name + "\"";
        const std::string now = std::string("\"name\":") + blank + "\"" + owner.name + "\"";
        for (size_t at = text->find(said); at != std::string::npos;
             at = text->find(said, at + now.size()))
          text->replace(at, said.size(), now);
      }
    std::error_code error;
    fs::create_directories(into_, error);
    const fs::path to = into_ / ("manifest_" + std::to_string(manifests_++) + ".json");
    std::ofstream(to, std::ios::binary) << *text;
    return {};
  }

  fs::path into_;
  std::map<std::string, Process> processes_;
  uint64_t next_process_ = kFirstProcess;
  std::map<std::string, uint64_t> next_rank_;  // by kind of folder
  size_t manifests_ = 0;
  size_t left_out_ = 0;
  fs::path first_left_out_;
};

Result<simdjson::dom::object> object_in(const std::string& path, simdjson::dom::parser& parser,
                                        std::string& text) {
  auto read = read_text(path, kMaxMapBytes);
  if (!read) return fail(read.error());
  text = std::move(*read);
  simdjson::dom::object object;
  if (parser.parse(text).get(object) != simdjson::SUCCESS || object.size() == 0)
    return fail(Error(ErrorCode::kUsage, path) << "is not a map of nodes to folders");
  return object;
}

}  // namespace

bool is_node_map(const std::string& path) {
  std::error_code error;
  if (!path.ends_with(".json") || !fs::is_regular_file(path, error)) return false;
  simdjson::dom::parser parser;
  std::string text;
  const auto object = object_in(path, parser, text);
  if (!object) return false;
  for (const auto field : *object) {
    simdjson::dom::array folders;
    if (field.value.get(folders) != simdjson::SUCCESS) return false;
    for (const simdjson::dom::element folder : folders)
      if (!folder.is_string()) return false;
  }
  return true;
}

Result<NodeMap> read_node_map(const std::string& path) {
  simdjson::dom::parser parser;
  std::string text;
  const auto object = object_in(path, parser, text);
  if (!object) return fail(object.error());
  NodeMap out;
  for (const auto field : *object) {
    const std::string node(field.key);
    simdjson::dom::array folders;
    if (node.empty() || node.find_first_of(":/\n") != std::string::npos || node.front() == '.' ||
        field.value.get(folders) != simdjson::SUCCESS)
      return fail(Error(ErrorCode::kUsage, path)
                  << "names a node '" << printable(node)
                  << "', which is none; expected {\"node\": [\"/folder\", …]}");
    for (const simdjson::dom::element each : folders) {
      std::string_view folder;
      if (each.get(folder) != simdjson::SUCCESS || !folder.starts_with('/') ||
          folder.find('\n') != std::string_view::npos)
        return fail(Error(ErrorCode::kUsage, path)
                    << "names a folder of " << printable(node)
                    << " that is not absolute; expected {\"node\": [\"/folder\", …]}");
      out.push_back({node, fs::path(folder).lexically_normal().native()});
      while (out.back().folder.size() > 1 && out.back().folder.ends_with('/'))
        out.back().folder.pop_back();
    }
  }
  if (out.empty()) return fail(Error(ErrorCode::kUsage, path) << "names no folder");
  return out;
}

Result<NodeView> NodeView::create(const NodeMap& map, const std::string& listed) {
  std::error_code error;
  // Beside the listings, whose folders are moved into it.
  const fs::path where = listed.empty() ? fs::temp_directory_path(error) : fs::path(listed);
  std::string pattern = (where / "ait_nodes_XXXXXX").native();
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail(Error(ErrorCode::kUnwritable, pattern)
                << "cannot be made: " << system_message(errno) << "; point TMPDIR elsewhere");
  NodeView view(pattern);
  Union all(view.path());
  for (size_t i = 0; i < map.size(); ++i) {
    fs::path from = fs::path(listed) / std::to_string(i);
    if (listed.empty()) {
      from = fs::path(view.root_) / "listed" / std::to_string(i);
      if (auto done = list_here(map[i], from, view.problems_); !done) return fail(done.error());
    }
    view.note_copies(map[i], from);
    if (auto added = all.add(from); !added) return fail(added.error());
  }
  if (all.left_out() > 0) {
    Error& said = view.problems_.emplace_back(ErrorCode::kUsage,
                                              view.node_path(all.first_left_out().native()));
    said << "is not compared";
    if (all.left_out() > 1) said << ", like " << all.left_out() - 1 << " more";
    said << ": a node that the map names earlier has a file of the same name";
  }
  return view;
}

NodeView::~NodeView() {
  std::error_code ignored;
  if (!root_.empty()) fs::remove_all(root_, ignored);
}

void NodeView::note_copies(const NodeFolder& of, const std::string& listed) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(listed, error), end; !error && at != end;
       at.increment(error)) {
    struct stat status{};
    if (::lstat(at->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      copies_[{status.st_dev, status.st_ino}] =
          of.node + ":" + (of.folder / at->path().lexically_relative(listed)).native();
  }
}

std::string NodeView::node_path(const std::string& listed) const {
  if (auto file = node_file(listed)) return std::move(file->path);
  struct stat status{};
  if (copies_.empty() || ::lstat(listed.c_str(), &status) != 0) return listed;
  const auto copy = copies_.find({status.st_dev, status.st_ino});
  return copy == copies_.end() ? listed : copy->second;
}

}  // namespace ait::capture
