// Where in a GE dump a path points, and the folders of tokens below it. See ge_tree.h for the layout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"

namespace ait::capture {

// The folder of one execution of one graph on one rank.
struct GeTokenFolder {
  size_t rank = 0;
  std::string time;  // of the session
  std::string model;
  std::string model_id;
  uint64_t token = 0;
  std::string below;  // its path below the rank's folder
};

// The text of a graph, on the rank that wrote it.
struct GeText {
  uint64_t graph = 0;
  std::string rank;  // empty: its name does not say
  std::string path;
};

struct GeFolders {
  std::string root;
  std::vector<Rank> ranks;             // by number
  std::vector<GeTokenFolder> folders;  // of a graph, rank and token one: the newest
  std::vector<GeText> texts;           // of a graph and rank one: the newest; by graph and rank
  std::vector<Error> problems;
};

// Whether a path is one, at a glance.
bool is_ge_folder(const std::string& path);

// Fails where a path holds several dumps, or none.
Result<GeFolders> find_ge_folders(const std::string& path);

}  // namespace ait::capture
