#include "capture/fx_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "capture/compiled_run.h"
#include "capture/converted.h"
#include "capture/dump_folders.h"
#include "capture/listing.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRootFolder = "msit_fx_dump";
constexpr std::string_view kOldRootFolder = "data_dump";
constexpr std::string_view kExtension = ".npy";
constexpr size_t kFoldersAtOnce = 64;

// In this order: the first part that a target contains decides.
constexpr auto kKindWords = std::to_array<KindWord>({
    {"norm", OpKind::kNorm},           {"rotary", OpKind::kRotary},
    {"embedding", OpKind::kEmbedding}, {"attention", OpKind::kAttention},
    {"mm", OpKind::kLinear},  // addmm and bmm, too
    {"linear", OpKind::kLinear},       {"gelu", OpKind::kActivation},
    {"silu", OpKind::kActivation},     {"relu", OpKind::kActivation},
    {"quant", OpKind::kQuantise},      {"_to_copy", OpKind::kMove},
    {"view", OpKind::kMove},           {"reshape", OpKind::kMove},
    {"permute", OpKind::kMove},        {"transpose", OpKind::kMove},
    {"expand", OpKind::kMove},         {"slice", OpKind::kMove},
    {"split", OpKind::kMove},          {"clone", OpKind::kMove},
    {"cat.", OpKind::kMove},           {"squeeze", OpKind::kMove},
    {"aten.t.", OpKind::kMove},        {"aten.mul", OpKind::kMultiply},
    {"aten.add", OpKind::kAdd},
});

// Folders of tokens; times have more digits.
bool is_token(const std::string& name) {
  constexpr size_t kMost = 11;
  return is_number(name) && name.size() <= kMost;
}

struct Listed {
  std::vector<std::string> folders;  // in natural order
  bool has_files = false;            // such as FX dumps have
};

Listed look_at(const std::string& path) {
  Listed out;
  if (const auto entries = list_folder(path))
    for (const Entry& entry : *entries) {
      if (entry.is_folder)
        out.folders.push_back(entry.name);
      else if (!out.has_files)
        out.has_files = parse_fx_file_name(entry.name).has_value();
    }
  std::sort(out.folders.begin(), out.folders.end(), natural_less);
  return out;
}

// One graph on one rank: the folders of its tokens, below the rank's.
struct Graph {
  std::string name;
  std::optional<uint64_t> number;
  std::vector<std::pair<uint64_t, std::string>> tokens;
};

struct OneRank {
  Rank rank;
  std::vector<Graph> graphs;
};

using Ranks = std::vector<OneRank>;

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

std::string name_of(const std::string& path) { return fs::path(path).filename().native(); }

OneRank lone_rank(const std::string& path) { return {{path, name_of(path), "0", {}}, {}}; }

// Whether one of the first few folders that fit has files of an FX dump: the others need not be
// looked at to know what they are.
template <typename Fits, typename HasFiles>
bool any_of_first(const std::vector<std::string>& folders, Fits fits, HasFiles has_files) {
  size_t looked_at = 0;
  constexpr size_t kLookAt = 4;  // a run that was killed may leave empty ones
  for (const std::string& name : folders) {
    if (!fits(name)) continue;
    if (looked_at++ == kLookAt) return false;
    if (has_files(name)) return true;
  }
  return false;
}

bool is_any(const std::string&) { return true; }

// {token}/{files} below a graph's folder.
std::vector<std::pair<uint64_t, std::string>> tokens_in(const std::string& path,
                                                        const std::string& below) {
  std::vector<std::pair<uint64_t, std::string>> out;
  const std::string folder = join(path, below);
  const std::vector<std::string> names = look_at(folder).folders;
  const auto has_files = [&](const std::string& name) {
    return look_at(join(folder, name)).has_files;
  };
  if (!any_of_first(names, is_token, has_files)) return out;
  for (const std::string& name : names)
    if (is_token(name)) out.emplace_back(time_of(name), join(below, name));
  return out;
}

// Folders of older versions are named after the token plus one. One that begins with 0 is not.
void subtract_one(std::vector<Graph>& graphs) {
  for (const Graph& graph : graphs)
    for (const auto& [token, below] : graph.tokens)
      if (token == 0) return;
  for (Graph& graph : graphs)
    for (auto& [token, below] : graph.tokens) --token;
}

// graph_1/{token}: a rank of the newest versions.
std::optional<OneRank> as_rank(const std::string& path, const Listed& listed) {
  OneRank out = lone_rank(path);
  out.rank.device = rank_of_folder(out.rank.name).value_or("0");
  for (const std::string& name : listed.folders) {
    const auto number = graph_number(name);
    if (!number) continue;
    Graph graph{name, number, tokens_in(path, name)};
    if (!graph.tokens.empty()) out.graphs.push_back(std::move(graph));
  }
  if (out.graphs.empty()) return std::nullopt;
  return out;
}

Ranks as_ranks(const std::string& path, const Listed& listed) {
  Ranks out;
  for (const std::string& name : listed.folders) {
    if (!rank_of_folder(name)) continue;
    const std::string folder = join(path, name);
    if (auto rank = as_rank(folder, look_at(folder))) out.push_back(std::move(*rank));
  }
  std::sort(out.begin(), out.end(), [](const OneRank& a, const OneRank& b) {
    return a.rank.device != b.rank.device ? natural_less(a.rank.device, b.rank.device)
                                          : natural_less(a.rank.name, b.rank.name);
  });
  return out;
}

// {token + 1}/gm_{time}_dump: graphs are told apart by the time at which each was made.
std::optional<OneRank> as_data_dump(const std::string& path, const Listed& listed) {
  const auto has_files = [&](const std::string& token) {
    const std::string folder = join(path, token);
    return any_of_first(look_at(folder).folders, is_any, [&](const std::string& name) {
      return look_at(join(folder, name)).has_files;
    });
  };
  if (!any_of_first(listed.folders, is_token, has_files)) return std::nullopt;
  OneRank out = lone_rank(path);
  std::map<std::string, Graph> graphs;
  for (const std::string& token : listed.folders) {
    if (!is_token(token)) continue;
    for (const std::string& name : look_at(join(path, token)).folders) {
      Graph& graph = graphs[name];
      graph.name = name;
      graph.tokens.emplace_back(time_of(token), join(token, name));
    }
  }
  for (auto& [name, graph] : graphs) out.graphs.push_back(std::move(graph));
  subtract_one(out.graphs);
  return out;
}

// {token + 1}/{files}, or {files}: one graph of version 1.0. Below graph_1 of the newest versions
// tokens are what they are.
std::optional<OneRank> as_graph(const std::string& path, const Listed& listed) {
  OneRank out = lone_rank(path);
  Graph graph{name_of(path), graph_number(name_of(path)), tokens_in(path, {})};
  if (graph.tokens.empty() && listed.has_files) graph.tokens.emplace_back(1, "");
  if (graph.tokens.empty()) return std::nullopt;
  const bool is_real = graph.number && !listed.has_files;
  out.graphs.push_back(std::move(graph));
  if (!is_real) subtract_one(out.graphs);
  return out;
}

// gm_{time}_dump/{token + 1}: several graphs of version 1.0 in the folder where the script ran.
std::optional<OneRank> as_old_runs(const std::string& path, const Listed& listed) {
  OneRank out = lone_rank(path);
  for (const std::string& name : listed.folders)
    if (name.starts_with("gm_"))
      if (Graph graph{name, std::nullopt, tokens_in(path, name)}; !graph.tokens.empty())
        out.graphs.push_back(std::move(graph));
  if (out.graphs.empty()) return std::nullopt;
  subtract_one(out.graphs);
  return out;
}

Ranks at_root(const std::string& path) {
  const Listed listed = look_at(path);
  if (Ranks ranks = as_ranks(path, listed); !ranks.empty()) return ranks;
  for (const auto& as : {as_rank, as_data_dump, as_graph, as_old_runs})
    if (auto rank = as(path, listed)) return {std::move(*rank)};
  return {};
}

struct Found {
  std::string root;
  Ranks ranks;
};

Found find(const std::string& given) {
  const std::string path = normal_path(given);
  const std::string inside = path + "/" + std::string(kRootFolder);
  for (const std::string& root : {path, inside, inside + "/" + std::string(kOldRootFolder),
                                  path + "/" + std::string(kOldRootFolder)})
    if (Ranks ranks = at_root(root); !ranks.empty()) return {root, std::move(ranks)};
  return {path, {}};
}

// Where each input stands: lists take as many places as they have elements, and one that was not
// recorded still takes its own.
uint32_t position_of(const FxFileName& input, const std::map<uint32_t, uint32_t>& elements) {
  uint32_t position = 0;
  uint32_t next = 0;
  for (const auto& [index, count] : elements) {
    if (index >= input.index) break;
    position += index - next + count;
    next = index + 1;
  }
  return position + (input.index - next) + input.element.value_or(0);
}

std::string tensor_name(const FxFileName& name) {
  std::string out = name.direction == Direction::kInput ? "input_" : "output_";
  out += std::to_string(name.index);
  return name.element ? out + "_" + std::to_string(*name.element) : out;
}

struct Files {
  std::vector<GraphFile> files;
  std::vector<Error> problems;
};

Files list_token(const std::string& path) {
  Files out;
  const auto entries = list_folder(path);
  if (!entries) {
    out.problems.push_back(entries.error());
    return out;
  }
  std::vector<FxFileName> names;
  // Of each node, how many elements each of its inputs has.
  std::map<std::string, std::map<uint32_t, uint32_t>, std::less<>> elements;
  for (const Entry& entry : *entries) {
    auto name = entry.is_folder ? std::nullopt : parse_fx_file_name(entry.name);
    if (!name || has_better(*entries, entry.name, kExtension)) continue;
    if (name->direction == Direction::kInput) {
      uint32_t& count = elements[name->node][name->index];
      count = std::max(count, name->element.value_or(0) + 1);
    }
    GraphFile& file = out.files.emplace_back();
    file.name = entry.name;
    file.operation = name->node + "-" + name->target;
    file.type = name->target;
    if (name->is_statistics) file.kept = Kept::kStatistics;
    file.time = file.weight = name->time;
    names.push_back(std::move(*name));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const FxFileName& name = names[i];
    const bool is_input = name.direction == Direction::kInput;
    out.files[i].tensors = {{name.direction,
                             is_input ? position_of(name, elements[name.node]) : name.index,
                             tensor_name(name)}};
  }
  return out;
}

// Operations go by their nodes' names; what GE calls their results is known by the target, too.
void describe(std::vector<Operation>& operations, const std::map<std::string, uint32_t>& outputs) {
  for (Operation& operation : operations) {
    operation.kind = kind_by_words(kKindWords, operation.type);
    SourceOperation& self = operation.parts.emplace_back();
    self.name = operation.name;
    if (const auto count = outputs.find(operation.name); count != outputs.end())
      for (uint32_t i = 0; i < count->second; ++i)
        self.results.push_back(operation.name + ".OUTPUT." + std::to_string(i));
    operation.name = operation.name.substr(0, operation.name.find('-'));
  }
}

}  // namespace

std::optional<FxFileName> parse_fx_file_name(std::string_view name) {
  constexpr std::string_view kInput = ".INPUT.";
  constexpr std::string_view kOutput = ".OUTPUT.";
  const auto stem = stem_of_statistics(name);
  if (!stem && !name.ends_with(kExtension)) return std::nullopt;
  name = stem ? *stem : name.substr(0, name.size() - kExtension.size());
  const size_t input = name.find(kInput);
  const size_t output = name.find(kOutput);
  const size_t end = std::min(input, output);
  const size_t dash = name.find('-');
  if (end == std::string_view::npos || dash == std::string_view::npos || dash == 0 || dash > end)
    return std::nullopt;
  FxFileName out;
  out.is_statistics = stem.has_value();
  out.node = name.substr(0, dash);
  out.target = name.substr(dash + 1, end - dash - 1);
  out.direction = input < output ? Direction::kInput : Direction::kOutput;
  name.remove_prefix(end + (input < output ? kInput : kOutput).size());
  std::vector<std::string_view> numbers;
  for (bool more = true; more;) {
    const size_t dot = name.find('.');
    numbers.push_back(name.substr(0, dot));
    more = dot != std::string_view::npos;
    if (more) name.remove_prefix(dot + 1);
  }
  const auto small = [](std::string_view text, uint32_t& to) {
    const auto [stopped, bad] = std::from_chars(text.data(), text.data() + text.size(), to);
    constexpr uint32_t kMost = 4096;  // more is no place in a list
    return bad == std::errc() && stopped == text.data() + text.size() && to < kMost;
  };
  if (numbers.size() < 2 || numbers.size() > 3 || !is_number(numbers.back())) return std::nullopt;
  if (!small(numbers[0], out.index)) return std::nullopt;
  if (numbers.size() == 3 && !small(numbers[1], out.element.emplace())) return std::nullopt;
  out.time = time_of(numbers.back());
  return out;
}

bool is_fx_tree(const std::string& path) { return !find(path).ranks.empty(); }

Result<Recording> read_fx_tree(const std::string& path) {
  const Found found = find(path);
  if (found.ranks.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "is no FX dump: expected worldsize…_global_rank…/graph_…/{token} or "
                   "{token}/gm_…_dump with {node}-{target}.OUTPUT.0.{time}.npy below it");
  Recording recording;
  recording.root = found.root;
  recording.traits = kFxTraits;

  // Graphs by number; without one, by the time in their names.
  struct Work {
    size_t rank;
    uint32_t graph;
    uint64_t token;
    std::string below;
  };
  CompiledRunBuilder builder;
  std::map<std::pair<uint64_t, std::string>, uint32_t> graph_of;
  for (const OneRank& rank : found.ranks)
    for (const Graph& graph : rank.graphs)
      graph_of.try_emplace({graph.number.value_or(0), graph.name});
  for (auto& [key, index] : graph_of)
    index = builder.add_graph(key.second, graph_number(key.second));
  std::vector<Work> work;
  for (const OneRank& rank : found.ranks) {
    for (const Graph& graph : rank.graphs)
      for (const auto& [token, below] : graph.tokens)
        work.push_back({recording.ranks.size(), graph_of[{graph.number.value_or(0), graph.name}],
                        token, below});
    recording.ranks.push_back(rank.rank);
  }

  std::vector<std::map<std::string, uint32_t>> outputs(graph_of.size());
  for (size_t first = 0; first < work.size(); first += kFoldersAtOnce) {
    std::vector<Files> listed(std::min(kFoldersAtOnce, work.size() - first));
    parallel_for(listed.size(), 0, [&](size_t i) {
      const Work& each = work[first + i];
      listed[i] = list_token(join(recording.ranks[each.rank].path, each.below));
    });
    for (size_t i = 0; i < listed.size(); ++i) {
      const Work& each = work[first + i];
      for (const GraphFile& file : listed[i].files)
        if (file.tensors[0].direction == Direction::kOutput) {
          uint32_t& count = outputs[each.graph][file.operation];
          count = std::max(count, file.tensors[0].index + 1);
        }
      for (Error& problem : listed[i].problems) recording.problems.push_back(std::move(problem));
      builder.add(each.rank, each.token, each.graph, each.below, listed[i].files,
                  recording.problems);
    }
  }
  for (uint32_t graph = 0; graph < graph_of.size(); ++graph)
    describe(builder.operations(graph), outputs[graph]);
  builder.finish(recording);
  return recording;
}

}  // namespace ait::capture
