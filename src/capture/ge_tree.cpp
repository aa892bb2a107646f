#include "capture/ge_tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/parallel.h"
#include "capture/compiled_run.h"
#include "capture/converted.h"
#include "capture/ge_folders.h"
#include "capture/ge_fusion.h"
#include "capture/ge_names.h"
#include "capture/listing.h"
#include "formats/ge_dump.h"
#include "formats/registry.h"
#include "graph/ge_text.h"

namespace ait::capture {
namespace {

// In this order: the first part that a type contains decides.
constexpr auto kKindWords = std::to_array<KindWord>({
    {"norm", OpKind::kNorm},           {"rotary", OpKind::kRotary},
    {"rope", OpKind::kRotary},         {"gather", OpKind::kEmbedding},
    {"embedding", OpKind::kEmbedding}, {"attention", OpKind::kAttention},
    {"matmul", OpKind::kLinear},       {"gelu", OpKind::kActivation},
    {"silu", OpKind::kActivation},     {"swish", OpKind::kActivation},
    {"relu", OpKind::kActivation},     {"quant", OpKind::kQuantise},
    {"transdata", OpKind::kMove},      {"cast", OpKind::kMove},
    {"transpose", OpKind::kMove},      {"reshape", OpKind::kMove},
    {"concat", OpKind::kMove},         {"split", OpKind::kMove},
    {"slice", OpKind::kMove},          {"allreduce", OpKind::kMove},
    {"mul", OpKind::kMultiply},        {"add", OpKind::kAdd},
});

// What GE puts in between others to change a type or an order.
constexpr std::array<std::string_view, 2> kCopies = {"Cast", "TransData"};

// Folders whose files are held in memory at once.
constexpr size_t kFoldersAtOnce = 16;

// Headers are read so many at a time.
constexpr size_t kFilesInChunk = 64;

std::vector<GraphFile::Tensor> tensors_of(const formats::ge_dump::Summary& summary) {
  std::vector<GraphFile::Tensor> out;
  out.reserve(size_t{summary.inputs} + summary.outputs);
  for (uint32_t i = 0; i < summary.inputs; ++i)
    out.push_back({Direction::kInput, i, "input_" + std::to_string(i)});
  for (uint32_t i = 0; i < summary.outputs; ++i)
    out.push_back({Direction::kOutput, i, "output_" + std::to_string(i)});
  return out;
}

// The files of one folder, before their headers are read.
struct Listed {
  std::vector<GraphFile> files;
  std::vector<Error> problems;
  size_t statistics = 0;
};

Listed list_token(const std::string& path) {
  Listed out;
  auto entries = list_folder(path);
  if (!entries) {
    out.problems.push_back(entries.error());
    return out;
  }
  std::map<std::string, std::string> mapping;
  bool has_mapping = false;
  for (const Entry& entry : *entries) {
    if (entry.is_folder) continue;
    GeNameKind kind = kind_of_ge_name(entry.name);
    if (kind == GeNameKind::kStatistics) ++out.statistics;
    const bool is_converted = kind == GeNameKind::kConverted;
    std::string full = entry.name;
    if (is_converted) {
      if (has_better(*entries, entry.name, "")) continue;
      full = *stem_of_statistics(entry.name);
      kind = kind_of_ge_name(full);
    }
    if (kind != GeNameKind::kDump && kind != GeNameKind::kHash) continue;
    if (kind == GeNameKind::kHash) {
      if (!std::exchange(has_mapping, true)) mapping = read_ge_mapping(path, out.problems);
      if (const auto known = mapping.find(full); known != mapping.end()) full = known->second;
    }
    const auto name = parse_ge_file_name(full);
    if (!name && kind == GeNameKind::kDump) {
      out.problems.push_back(Error(ErrorCode::kUsage, path + "/" + entry.name)
                             << "is not used: expected a name such as "
                                "{type}.{operation}.{task}.{stream}.{time}");
      continue;
    }
    GraphFile& file = out.files.emplace_back();
    file.name = entry.name;
    file.has_members = true;
    if (is_converted) file.kept = Kept::kStatistics;
    if (name) {
      file.operation = name->operation;
      file.type = name->type;
      file.time = name->time;
    }
  }
  return out;
}

// How many of each there are statistics of.
Result<formats::ge_dump::Summary> summarise_statistics(const std::string& path) {
  const auto file = formats::open_tensor_file(path);
  if (!file) return fail(file.error());
  formats::ge_dump::Summary out;
  for (size_t i = 0; i < (*file)->size(); ++i)
    ++((*file)->name(i).starts_with("input_") ? out.inputs : out.outputs);
  return out;
}

// Asks a file for its tensors, and for the name that its operation has in the graph. A file that
// cannot be read is taken to have an output, so that a row says what is wrong with it.
void look_into(const std::string& folder, GraphFile& file) {
  const std::string path = folder + "/" + file.name;
  const auto summary = file.kept == Kept::kStatistics ? summarise_statistics(path)
                                                      : formats::ge_dump::summarise(path);
  if (!summary) {
    file.tensors = {{Direction::kOutput, 0, "output_0"}};
  } else {
    file.tensors = tensors_of(*summary);
    file.weight = summary->file_bytes;
    if (!summary->op_name.empty()) file.operation = summary->op_name;
  }
  if (file.operation.empty()) file.operation = file.name;
}

class TreeReader {
 public:
  explicit TreeReader(GeFolders found) : found_(std::move(found)) {
    recording_.root = found_.root;
    recording_.traits = kGeTraits;
    recording_.ranks = found_.ranks;
    recording_.problems = std::move(found_.problems);
  }

  Recording read() {
    read_texts();
    find_graphs();
    for (size_t first = 0; first < found_.folders.size(); first += kFoldersAtOnce)
      read_folders(first, std::min(first + kFoldersAtOnce, found_.folders.size()));
    for (uint32_t graph = 0; graph < graph_texts_.size(); ++graph) describe_operations(graph);
    if (statistics_ > 0)
      recording_.problems.push_back(Error(ErrorCode::kUnsupported, found_.root)
                                    << "holds " << statistics_
                                    << " files of statistics (.csv, .npz), which are not used");
    builder_.finish(recording_);
    return std::move(recording_);
  }

 private:
  static constexpr size_t kNoText = ~size_t{0};

  // Ranks usually have the same graphs: equal ones are one.
  void read_texts() {
    std::vector<Result<graph::GeGraph>> read(found_.texts.size());
    parallel_for(read.size(), 0,
                 [&](size_t i) { read[i] = graph::read_ge_text(found_.texts[i].path); });
    for (size_t i = 0; i < read.size(); ++i) {
      if (!read[i]) {
        recording_.problems.push_back(read[i].error());
        continue;
      }
      auto& known = text_of_[found_.texts[i].graph];
      size_t text = kNoText;
      for (const auto& [rank, other] : known)
        if (texts_[other] == *read[i]) text = other;
      if (text == kNoText) {
        text = texts_.size();
        texts_.push_back(std::move(*read[i]));
      }
      known.emplace(found_.texts[i].rank, text);
    }
    if (found_.texts.empty())
      recording_.problems.push_back(
          Error(ErrorCode::kNotFound, found_.root)
          << "holds no dynamo_original_graph_….txt: what operations were made of is not known, so "
             "that only equal names are paired");
  }

  // The text of a graph on a rank: its own, one without a rank, or the only one there is.
  size_t text_of(uint64_t graph, const std::string& rank) const {
    const auto known = text_of_.find(graph);
    if (known == text_of_.end()) return kNoText;
    for (const std::string& wanted : {rank, std::string()})
      if (const auto own = known->second.find(wanted); own != known->second.end())
        return own->second;
    const size_t first = known->second.begin()->second;
    const bool same = std::all_of(known->second.begin(), known->second.end(),
                                  [&](const auto& each) { return each.second == first; });
    return same ? first : kNoText;
  }

  // Models whose names have no number are the graphs in their order.
  std::map<std::string, uint64_t> number_models(size_t rank) const {
    std::set<std::pair<std::string, std::string>> named;  // model and id; without a number
    std::set<uint64_t> taken;
    for (const GeTokenFolder& folder : found_.folders) {
      if (folder.rank != rank) continue;
      if (const auto number = graph_number(folder.model))
        taken.insert(*number);
      else
        named.emplace(folder.model, folder.model_id);
    }
    std::vector<std::pair<std::string, std::string>> models(named.begin(), named.end());
    std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? natural_less(a.second, b.second)
                                  : natural_less(a.first, b.first);
    });
    std::map<std::string, uint64_t> out;
    auto model = models.begin();
    for (const auto& [graph, ranks] : text_of_)
      if (!taken.contains(graph) && model != models.end()) {
        out.emplace(model->first + "/" + model->second, graph);
        ++model;
      }
    return out;
  }

  // A graph for each model, and again where ranks were given different ones.
  void find_graphs() {
    using Key = std::tuple<uint64_t, std::string, std::string, size_t>;
    constexpr uint64_t kLast = ~uint64_t{0};
    std::vector<Key> keys;
    for (size_t rank = 0; rank < recording_.ranks.size(); ++rank) {
      const auto numbers = number_models(rank);
      for (const GeTokenFolder& folder : found_.folders) {
        if (folder.rank != rank) continue;
        auto number = graph_number(folder.model);
        if (!number)
          if (const auto known = numbers.find(folder.model + "/" + folder.model_id);
              known != numbers.end())
            number = known->second;
        const size_t text = number ? text_of(*number, recording_.ranks[rank].device) : kNoText;
        keys.emplace_back(number.value_or(kLast), folder.model_id, folder.model, text);
      }
    }
    // found_.folders are by rank, so that keys run in step with them.
    std::vector<Key> sorted = keys;
    const auto less = [](const Key& a, const Key& b) {
      const auto& [number_a, id_a, model_a, text_a] = a;
      const auto& [number_b, id_b, model_b, text_b] = b;
      if (number_a != number_b) return number_a < number_b;
      if (id_a != id_b) return natural_less(id_a, id_b);
      return std::tie(model_a, text_a) < std::tie(model_b, text_b);
    };
    std::sort(sorted.begin(), sorted.end(), less);
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::map<uint64_t, std::set<std::pair<std::string, std::string>>> models;
    for (const auto& [number, id, model, text] : sorted) models[number].emplace(model, id);
    for (const auto& [number, id, model, text] : sorted) {
      const bool alone = number != kLast && models[number].size() == 1;
      std::string name = alone ? "graph_" : model;
      name += alone ? std::to_string(number) : "_";
      if (!alone) name += id;
      builder_.add_graph(name, number == kLast ? std::nullopt : std::optional(number));
      graph_texts_.push_back(text);
    }
    for (const Key& key : keys)
      graph_of_.push_back(static_cast<uint32_t>(
          std::lower_bound(sorted.begin(), sorted.end(), key, less) - sorted.begin()));
  }

  void read_folders(size_t first, size_t end) {
    const auto path_of = [&](const GeTokenFolder& folder) {
      return recording_.ranks[folder.rank].path + "/" + folder.below;
    };
    std::vector<Listed> listed(end - first);
    parallel_for(listed.size(), 0,
                 [&](size_t i) { listed[i] = list_token(path_of(found_.folders[first + i])); });
    std::vector<std::pair<size_t, size_t>> chunks;  // folder, first file
    for (size_t i = 0; i < listed.size(); ++i)
      for (size_t file = 0; file < listed[i].files.size(); file += kFilesInChunk)
        chunks.emplace_back(i, file);
    parallel_for(chunks.size(), 0, [&](size_t i) {
      const auto& [folder, from] = chunks[i];
      auto& files = listed[folder].files;
      const std::string path = path_of(found_.folders[first + folder]);
      for (size_t file = from; file < std::min(from + kFilesInChunk, files.size()); ++file)
        look_into(path, files[file]);
    });
    for (size_t i = 0; i < listed.size(); ++i) {
      const GeTokenFolder& folder = found_.folders[first + i];
      statistics_ += listed[i].statistics;
      for (Error& problem : listed[i].problems) recording_.problems.push_back(std::move(problem));
      builder_.add(folder.rank, folder.token, graph_of_[first + i], folder.below, listed[i].files,
                   recording_.problems);
    }
  }

  void describe_operations(uint32_t graph) {
    std::vector<Operation>& operations = builder_.operations(graph);
    for (Operation& operation : operations) {
      operation.kind = kind_by_words(kKindWords, operation.type);
      operation.is_copy = std::any_of(kCopies.begin(), kCopies.end(), [&](std::string_view copy) {
        return operation.type.find(copy) != std::string::npos;
      });
    }
    if (graph_texts_[graph] == kNoText) return;
    const graph::GeGraph& text = texts_[graph_texts_[graph]];
    const GraphNames names(text);
    std::unordered_set<std::string> dumped;
    for (const Operation& operation : operations) dumped.insert(operation.name);
    for (Operation& operation : operations) {
      const Fusion fusion = names.decompose(operation.name, dumped);
      // "Add_1_trans_Cast_3" is no addition but what GE put behind one.
      if (operation.is_copy && !fusion.is_whole) continue;
      operation.has_more_parts = !fusion.is_whole;
      for (const uint32_t part : fusion.parts) {
        const graph::GeOperation& from = text.operations[part];
        SourceOperation& source = operation.parts.emplace_back();
        source.name = from.name;
        source.results = from.fx_tensors;
        for (const auto& input : from.inputs)
          source.sources.push_back(input.operation + ":" + std::to_string(input.output));
      }
    }
  }

  GeFolders found_;
  Recording recording_;
  CompiledRunBuilder builder_;
  std::vector<graph::GeGraph> texts_;
  std::map<uint64_t, std::map<std::string, size_t>> text_of_;  // by graph and rank
  std::vector<size_t> graph_texts_;                            // of each graph
  std::vector<uint32_t> graph_of_;                             // of each folder
  size_t statistics_ = 0;
};

}  // namespace

bool is_ge_tree(const std::string& path) { return is_ge_folder(path); }

Result<Recording> read_ge_tree(const std::string& path) {
  auto found = find_ge_folders(path);
  if (!found) return fail(found.error());
  return TreeReader(std::move(*found)).read();
}

}  // namespace ait::capture
