// Files of runs that are spread over the nodes of a cluster. Their paths are "node:/path"; where such a file can be
// read here is found out when it is opened.
//
//   use_node_paths({"n0", "n1"});
//   auto path = local_path("n1:/dumps/0_77/x.bin");   // "/dumps/0_77/x.bin", or where it was brought to
//
// The environment says what is where, as the coordinator of a cluster sets it:
//
//     AIT_NODE          which node this process is on: its files are where they are
//     AIT_NODE_FILES    a folder with files of other nodes: {folder}/{node}/path; a link to a blank and an error number
//                       in the place of one that cannot be had
//     AIT_NODE_SOCKET   who brings a file that is not there yet: a UNIX socket that takes a path and a line end, and
//                       answers with the path of a copy or, after a blank, an error number, and a line end
//
// Where such a run is listed, each of its files is a symbolic link to "1024 node:/path", bytes and path.
//
// Without the variables every node's files are read as they are, from a file system that this machine shares with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait {

// From now on such paths of these nodes are meant. Until then "a:/b" is a file of that name. Before any thread opens a
// file.
void use_node_paths(std::vector<std::string> nodes);

struct NodeFile {
  uint64_t bytes = 0;
  std::string path;  // "node:/path"
};
// What a link of a listing says; nothing where the path is none.
std::optional<NodeFile> node_file(const std::string& path);
// Its target.
std::string link_text(const NodeFile& file);

// Without any node every path is as it is.
bool has_node_paths();

// Where to open the file; a path that is of no node as it is. kNotFound, kUnreadable where it cannot be had.
Result<std::string> local_path(const std::string& path);

}  // namespace ait
