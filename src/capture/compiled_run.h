// Makes a Recording of a run of compiled graphs, whose files are named after the time at which they
// were written. Shared by ge_tree and fx_tree.
//
//   CompiledRunBuilder builder;
//   const uint32_t graph = builder.add_graph("graph_1", 1);
//   builder.add(rank, token, graph, "20240125/0/graph_1/1/0", files, problems);
//   builder.finish(recording);
//
// Each graph counts its own rounds. Operations come in the order in which they were written: one that
// the first rounds lack stands where a later one has it. Executions of graphs come by time, too.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "capture/recording.h"

namespace ait::capture {

// A file and the tensors in it.
struct GraphFile {
  struct Tensor {
    Direction direction = Direction::kOutput;
    uint32_t index = 0;
    std::string name;  // "input_0"
  };
  std::string name;
  std::string operation;  // "Add_2", unique in its graph
  std::string type;
  uint64_t time = 0;    // to be compared with others of its run
  uint64_t weight = 0;  // of two files of one tensor in one folder the heavier is taken
  std::vector<Tensor> tensors;
  bool has_members = false;  // tensors have names in the file, too
  Kept kept = Kept::kBytes;
};

class CompiledRunBuilder {
 public:
  uint32_t add_graph(std::string name, std::optional<uint64_t> number);

  // Of one rank, token and graph. `folder` is below the rank's. Twice the same tensor is one of
  // `problems`.
  void add(size_t rank, uint64_t token, uint32_t graph, std::string folder,
           const std::vector<GraphFile>& files, std::vector<Error>& problems);

  // What is known of the operations, by graph and name; changed as their layout knows better.
  std::vector<Operation>& operations(uint32_t graph) { return graphs_[graph].operations; }

  // Ranks must be there. Where there are several graphs, names of operations get the graph's before
  // them.
  void finish(Recording& recording);

 private:
  struct Graph {
    CompiledGraph compiled;
    std::vector<Operation> operations;
    std::list<uint32_t> order;                                // in which they ran
    std::vector<std::list<uint32_t>::const_iterator> places;  // of each of them
    std::unordered_map<std::string, uint32_t> known;
    std::vector<Slot> slots;
    std::unordered_map<std::string, uint32_t> slot_of;  // "Add_2/input_0"
  };
  struct Folder {
    size_t rank;
    uint64_t token;
    uint32_t graph;
    uint64_t time;  // of its first file
    std::vector<uint32_t> slots;
    Recording::FileNames names;
  };

  static void add_operations(Graph& graph, const std::vector<GraphFile>& files);
  static uint32_t slot_of(Graph& graph, const GraphFile& file, const GraphFile::Tensor& tensor);
  void arrange_graph(Graph& graph, uint32_t unit, Recording& recording);

  std::vector<Graph> graphs_;
  std::vector<Folder> folders_;
  bool has_statistics_ = false;  // in place of some data
};

// "worldsize2_global_rank1" says 1; nothing where a name says no rank.
std::optional<std::string> rank_of_folder(std::string_view name);

// The number in the first "graph_12" of a name.
std::optional<uint64_t> graph_number(std::string_view name);

// Of a number of up to 18 digits or more, the last 18: times of one run differ in these.
uint64_t time_of(std::string_view digits);

}  // namespace ait::capture
