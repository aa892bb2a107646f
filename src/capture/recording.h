// A recorded run of operations: who there is, which tensors each of them had, and in which rounds
// and on which ranks these were kept. Layouts: atb_dump.h, torch_dump.h, ge_tree.h, fx_tree.h.
//
//   auto recording = read_atb_dump("ait_dump");
//   if (!recording) return fail(recording.error());
//   for (uint32_t slot = 0; slot < recording->slots.size(); ++slot)
//     if (recording->has(rank, round, slot)) use(recording->record(rank, round, slot));
//
// A run of 8 ranks and 200 rounds of a 40-layer model has millions of files, which differ only in
// rank and round. What is kept here is therefore one entry for each operation and for each of its
// tensors ("slot"), and for each rank and round which of them are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "capture/capture.h"
#include "capture/op_kind.h"

namespace ait::capture {

inline constexpr uint32_t kNoOperation = ~uint32_t{0};

// What is true of every run of a layout. Whoever uses a recording asks these questions, never which
// tool wrote it.
struct Traits {
  // What makes operations of two runs the same one.
  enum class Identity : uint8_t {
    kNames,   // names of operations and of their tensors: "root.model.layers.0.mlp", "output_0"
    kPlaces,  // numbers in the graph, and of tensors direction and number: names may differ
  };
  // What the folders of rounds count.
  enum class Rounds : uint8_t {
    kCalls,   // of the whole model: a round holds all that ran for a token
    kSetUps,  // of each operation: graphs for prefill and for decode count for themselves
    kGraphs,  // of each compiled graph
  };
  // Where the sequences of a batch are.
  enum class Batch : uint8_t {
    kApart,   // [sequences, tokens, …]
    kPacked,  // [tokens of all sequences, …]
  };
  // Whose names the types are: the two columns of a mapping file (match/op_mapping.h).
  enum class Types : uint8_t { kModules, kLibrary };

  std::string_view words;  // "a torch dump"
  Identity identity = Identity::kNames;
  Rounds rounds = Rounds::kCalls;
  Batch batch = Batch::kApart;
  Types types = Types::kModules;
  // Something may happen between operations that only their inputs show: the residual additions
  // between modules. Elsewhere an input is the output of another operation.
  bool inputs_are_values = false;
};

// What a compiler was given, and made one of its own operations of, alone or with others: fused.
struct SourceOperation {
  std::string name;                  // "Add_2"; in an FX graph "add_1-aten.add.Tensor"
  std::vector<std::string> sources;  // of each input, the operation and output it is: "Cast_9:0"
  // Of each output, what the graph of the model calls it: "add_1-aten.add.Tensor.OUTPUT.0". Empty
  // where it is none of that graph's.
  std::vector<std::string> results;
};

struct Operation {
  std::string name;  // "2_Layer/0_LinearOperation", "root.model.layers.0"
  std::string type;  // "LinearOperation", "LlamaDecoderLayer"; empty where nobody says
  OpKind kind = OpKind::kUnknown;
  std::string param;          // JSON, or empty
  std::vector<uint64_t> ids;  // {2, 0}; empty where operations have no numbers
  Level level = Level::kOperation;
  uint32_t parent = kNoOperation;
  uint32_t end = 0;  // one past its last descendant: [i, end) is its subtree
  // Names of tensors, as a topology says them; empty without one. Equal names are the same tensor.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  // Of an operation of a compiled graph: what it does the work of, in order. Empty where the compiler
  // put it in, or nobody says.
  std::vector<SourceOperation> parts;
  bool has_more_parts = false;  // which could not be told
  bool is_copy = false;         // its outputs hold what its inputs do, in another type or order
};

// A graph that was compiled as a whole, so that its operations always run together.
struct CompiledGraph {
  std::string name;                // "graph_1"
  std::optional<uint64_t> number;  // 1
  uint32_t first = 0;              // its operations are [first, end)
  uint32_t end = 0;
};

// One tensor of an operation, in whatever round.
struct Slot {
  uint32_t operation = kNoOperation;
  Moment moment = Moment::kAfter;
  Direction direction = Direction::kOutput;
  uint32_t index = 0;
  uint32_t call = 0;
  Kept kept = Kept::kBytes;
  std::string file;    // below the round's folder
  std::string member;  // its name inside a file of several; empty for a file's only tensor
  uint32_t unit = 0;   // the first folder of `file`, or `file` itself

  // "outtensor0", "output_0": its name among the tensors of its operation, what stands last in the
  // name that it has in its file, or in its file's.
  std::string tensor() const;
};

struct Rank {
  std::string path;    // of its folder
  std::string name;    // "0_41210"
  std::string device;  // "0", "npu1", "cpu"
  std::string pid;
};

// Whether all that was to be recorded is there.
struct Completeness {
  std::optional<bool> complete;     // nothing: nobody says
  std::vector<std::string> doubts;  // sentences without their end, one for each thing that is wrong
};

struct Recording {
  std::string root;
  std::string model;  // its kind, "LlamaForCausalLM"; empty where nobody says
  Traits traits;
  std::vector<Rank> ranks;                        // by device
  std::vector<std::string> rounds;                // names of folders, numbers in numeric order
  std::vector<Operation> operations;              // in the order in which they run, parents first
  std::vector<Slot> slots;                        // by operation; inputs before outputs
  std::vector<uint32_t> first_slot;               // of each operation, and one more at the end
  std::vector<std::string> models;                // topology files of models that were read
  std::vector<std::vector<uint64_t>> model_tops;  // of each of them: the ids of its operations
  // Of a run of compiled graphs, each of which counts its own rounds: the graphs, which are units,
  // and which of them ran after which.
  std::vector<CompiledGraph> graphs;
  struct Execution {
    uint32_t graph;
    uint32_t round;
    bool operator==(const Execution&) const = default;
  };
  std::vector<Execution> executions;
  std::vector<Error> problems;
  Completeness completeness;
  std::vector<Recording> more_models;  // that the same processes ran, in the order they were begun

  bool has(size_t rank, size_t round, uint32_t slot) const;
  bool has_any(size_t rank, size_t round, uint32_t operation) const;  // itself or below it
  TensorRecord record(size_t rank, size_t round, uint32_t slot) const;

  // Which files lie in the folder `unit` of a rank and round. The same set of files is stored once.
  struct UnitContent {
    uint32_t unit;
    uint32_t content;
    bool operator<(const UnitContent& other) const { return unit < other.unit; }
  };
  std::vector<std::string> units;
  std::vector<std::vector<uint32_t>> contents;  // slots, sorted
  // Where the names of files tell when they were written, and so differ from round to round: of each
  // content, its files. Empty where slots name them.
  struct FileNames {
    std::string folder;
    std::string texts;              // names, each ended by a NUL
    std::vector<uint32_t> name_of;  // of each slot of the content, in its order: where in `texts`
    // Likewise the name of the tensor inside of its file, of which is kept what its slot says; an
    // empty text for the only tensor of a file. Empty where slots say it.
    std::vector<uint32_t> member_of;
  };
  std::vector<FileNames> file_names;
  // By rank * rounds.size() + round, sorted by unit; absent where a rank has no such round.
  std::unordered_map<uint64_t, std::vector<UnitContent>> kept;
};

// Collects what was listed and makes a Recording of it.
class RecordingBuilder {
 public:
  // What a layout makes of a file: which operation it belongs to and as what. A file may hold
  // several tensors, or none.
  struct Name {
    std::string operation;
    Slot slot;  // without operation and unit; without a file where that is the one that was listed
  };
  using ParseFile = std::function<std::vector<Name>(std::string_view file)>;

  // `files` as list_files gives them, of the folder `unit` of this rank and round.
  void add(size_t rank, size_t round, const std::string& unit, std::string files);

  // Calls visit(rank, round, unit, files) for every different content, where it was first seen.
  template <typename Visit>
  void each(Visit visit) const {
    std::vector<const std::string*> names(units_.size());
    for (const auto& [name, index] : units_) names[index] = &name;
    std::vector<bool> seen(contents_.size());
    std::vector<const std::string*> files(contents_.size());
    for (const auto& [key, content] : contents_) files[content] = &key.second;
    for (const Listed& each : listed_) {
      if (seen[each.content]) continue;
      seen[each.content] = true;
      visit(size_t{each.rank}, size_t{each.round}, *names[each.unit],
            std::string_view(*files[each.content]));
    }
  }

  // `operations` come with everything but `parent`s of those that were not known before; files of
  // an operation that is not among them add it. `less` puts siblings in order.
  void finish(Recording& recording, std::vector<Operation> operations, const ParseFile& parse,
              const std::function<Operation(const std::string& name)>& describe,
              const std::function<std::string(const std::string& name)>& parent_of,
              const std::function<bool(const Operation& a, const Operation& b)>& less);

 private:
  struct Listed {
    uint32_t rank;
    uint32_t round;
    uint32_t unit;
    uint32_t content;
  };
  std::vector<Listed> listed_;
  std::map<std::string, uint32_t, std::less<>> units_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> contents_;
};

}  // namespace ait::capture
