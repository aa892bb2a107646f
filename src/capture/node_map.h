// A run whose folders lie on several nodes, as a json file {"node": ["folder", …]} names them, made one folder to list.
//
//   const auto map = read_node_map("nodes.json");       // nothing: it is no such file
//   auto view = NodeView::create(*map, {});
//   if (!view) return fail(view.error());
//   auto list = match::pair_paths({.golden = view->path(), …});
//   std::string path = view->node_path(record.path);    // "node:/folder/tensors/0_77/0/…"
//
// The view is a temporary folder of links (base/node_paths.h) and copies of json files; it goes with the object. Ranks
// of several machines may have the same numbers of devices and processes: in the view they have the rank that their
// manifests say or, where these say none, one after the other in the order of the map, and process numbers of their own.
// Folders keep their times, which say what is the later run of a rank.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace ait::capture {

struct NodeFolder {
  std::string node;
  std::string folder;  // absolute
};
using NodeMap = std::vector<NodeFolder>;

// Whether a path is a file that could be a map: json, of an object of lists of texts.
bool is_node_map(const std::string& path);
// kUsage, in words, where a node or folder makes no sense.
Result<NodeMap> read_node_map(const std::string& path);

class NodeView {
 public:
  // `listed`: a folder that holds what was listed on the nodes, {listed}/{place in the map}; empty: the folders are
  // listed here.
  static Result<NodeView> create(const NodeMap& map, const std::string& listed);

  NodeView(NodeView&& other) noexcept
      : root_(std::exchange(other.root_, {})),
        copies_(std::move(other.copies_)),
        problems_(std::move(other.problems_)) {}
  NodeView& operator=(NodeView&&) = delete;
  ~NodeView();

  std::string path() const { return root_ + "/run"; }
  // Folders that cannot be listed, and files that an earlier node has under the same name.
  const std::vector<Error>& problems() const { return problems_; }

  // The path of a file of the view on its node; any other as it is.
  std::string node_path(const std::string& listed) const;

 private:
  // By device and number, which a file keeps when it is moved.
  using Copies = std::map<std::pair<dev_t, ino_t>, std::string>;

  explicit NodeView(std::string root) : root_(std::move(root)) {}
  void note_copies(const NodeFolder& of, const std::string& listed);

  std::string root_;
  Copies copies_;  // of json files: whose they are, "node:/path"
  std::vector<Error> problems_;
};

}  // namespace ait::capture
