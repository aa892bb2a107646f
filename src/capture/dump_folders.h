// Where in a dump a path points, whatever part of it a person named: the folder that holds
// ait_dump, the dump itself, its tensors, one rank, or one round. Shared by atb_dump and
// torch_dump.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"

namespace ait::capture {

// "ait_dump", "ait_dump_20250102_030405", "msit_dump…", "atb_dump_data"
bool is_dump_name(std::string_view name);

// Absolute, without "." and ".." and without a slash at its end: parents are needed by name.
std::string normal_path(const std::string& given);

// "12"
bool is_number(std::string_view text);

// "4711" of "4711" and of "thread_4711", as the oldest tools call a rank's folder; else nothing.
std::string lone_process(std::string_view name);

// "3_Linear": a number, an underscore and something.
bool is_numbered(std::string_view name);

struct RankFolders {
  std::string root;         // of the dump: where topologies lie; empty if none is known
  std::vector<Rank> ranks;  // by device; of several processes on one device the latest
  // Where these processes ran further models, the ranks of each of them, in the order in which they
  // were begun. `ranks` are those of the first.
  std::vector<std::vector<Rank>> more_models;
  std::string only_round;  // where the path named one
  std::vector<Error> problems;
};

// What a folder says of itself.
struct FolderFacts {
  std::string process;  // the same in all folders of a process; empty where nobody says
  std::string model;    // what kind of model it is of
  double started = 0;   // seconds
};

// What makes a folder a rank's and a round's in one layout.
struct FolderRules {
  std::vector<std::string_view> tensors_folders;         // "tensors"
  std::function<bool(const std::string& name)> is_rank;  // by name
  std::function<bool(const std::string& path)> holds_rounds;
  std::function<bool(const std::string& path)> is_round;
  // Says more of a rank than its name does; may be empty.
  std::function<FolderFacts(Rank& rank)> look_inside;
};

// Nothing (no ranks) where the path is no such dump. Fails where it holds several dumps.
Result<RankFolders> find_ranks(const std::string& path, const FolderRules& rules);

// What a file in the folder of a round holds, as list_files would say it: such a file is a unit, too.
// Nothing where it holds nothing.
using ReadRoundFile =
    std::function<std::string(const std::string& path, std::vector<Error>& problems)>;

// Lists every rank's rounds on all cores and gives it to `builder`; sets recording.rounds. `read_file`
// is called on several threads at once.
void list_rounds(Recording& recording, RecordingBuilder& builder, const std::string& only_round,
                 const std::function<bool(const std::string& name)>& is_round_name,
                 const ReadRoundFile& read_file = nullptr);

}  // namespace ait::capture
