#include "capture/msprobe_dump.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/mapped_file.h"
#include "base/text_file.h"
#include "capture/dump_folders.h"
#include "capture/listing.h"
#include "capture/module_tree.h"
#include "capture/named_run.h"
#include "formats/msprobe_json.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;
using formats::msprobe_json::Item;

constexpr std::string_view kDumpFile = "dump.json";
constexpr std::string_view kConstructFile = "construct.json";
constexpr std::string_view kDataFolder = "dump_tensor_data";
constexpr size_t kMaxConstructBytes = size_t{3} << 30;
// Modules nest a few dozen levels; a circle ends here.
constexpr size_t kMaxAncestors = 1000;
// Each part of a name is a module of its own, so that a long one costs the square of its length.
constexpr size_t kMaxKeyBytes = 1024;

// The trees that operations stand in.
constexpr std::string_view kForwardRoot = "root";
constexpr std::string_view kBackwardRoot = "backward";

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t number = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Takes ".last" off the end of a text.
std::string_view take_last(std::string_view& text) {
  const size_t dot = text.rfind('.');
  const std::string_view last = text.substr(dot == std::string_view::npos ? 0 : dot + 1);
  text = text.substr(0, dot == std::string_view::npos ? 0 : dot);
  return last;
}

std::optional<MsprobeCall::Pass> pass_of(std::string_view word) {
  if (word == "forward") return MsprobeCall::Pass::kForward;
  if (word == "backward") return MsprobeCall::Pass::kBackward;
  if (word == "parameters_grad") return MsprobeCall::Pass::kGradients;
  return std::nullopt;
}

// "input_0", "input_position_embeddings_1", "output", "output_last_hidden_state",
// "output_grad_weight";
// empty for what is not compared. `is_only_output`: of a call that put out a single thing, which
// msprobe writes as a list of one.
std::string tensor_name(const Item& item, MsprobeCall::Pass pass, bool is_only_output) {
  if (pass == MsprobeCall::Pass::kGradients) return "output_grad_" + folder_safe(item.part);
  const bool is_output = item.part == "output";
  if (!is_output && item.part != "input_args" && item.part != "input_kwargs" &&
      item.part != "input")
    return {};
  std::string_view place = item.place;
  if (is_output && is_only_output) {
    const size_t dot = place.find('.');
    place = dot == std::string_view::npos ? std::string_view() : place.substr(dot + 1);
  }
  std::string out = (is_output ? "output" : "input") + std::string(place.empty() ? "" : "_");
  std::string below = folder_safe(place);
  std::replace(below.begin(), below.end(), '.', '_');
  return out + below;
}

struct RankFolder {
  std::string below;  // the dump: "step0/rank0"; empty where the dump is one such folder
  uint32_t step = 0;
  std::string name;  // "rank0"
};

// "step12" says 12.
std::optional<uint32_t> number_after(std::string_view name, std::string_view word) {
  return name.starts_with(word) ? number_of(name.substr(word.size())) : std::nullopt;
}

bool is_rank_folder(const std::string& path) {
  const std::string file = path + "/" + std::string(kDumpFile);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return false;
  const auto mapped = MappedFile::open(file);
  return mapped && formats::msprobe_json::sniff((*mapped)->bytes());
}

bool is_proc_name(std::string_view name) { return number_after(name, "proc").has_value(); }

// Older versions call the only one "rank".
bool is_rank_name(std::string_view name) {
  return name == "rank" || number_after(name, "rank") || is_proc_name(name);
}

void add_ranks_of_step(const std::string& path, const std::string& below, uint32_t step,
                       std::vector<RankFolder>& out) {
  const auto entries = list_folder(path);
  if (!entries) return;
  for (const Entry& entry : *entries)
    if (entry.is_folder && is_rank_name(entry.name))
      out.push_back({below + entry.name, step, entry.name});
}

// All of them, by step; none where the path is no such dump.
std::vector<RankFolder> find_folders(const std::string& path) {
  const fs::path normal = normal_path(path);
  std::vector<RankFolder> out;
  if (is_rank_folder(path)) {
    const uint32_t step =
        number_after(normal.parent_path().filename().native(), "step").value_or(0);
    const std::string name = normal.filename().native();
    return {{"", step, is_rank_name(name) ? name : "rank0"}};
  }
  const auto entries = list_folder(path);
  if (!entries) return out;
  for (const Entry& entry : *entries)
    if (const auto step = number_after(entry.name, "step"); step && entry.is_folder)
      add_ranks_of_step(path + "/" + entry.name, entry.name + "/", *step, out);
  if (out.empty())
    add_ranks_of_step(path, "", number_after(normal.filename().native(), "step").value_or(0), out);
  // Where one is msprobe's, the others are, too, even if their dump.json was never written.
  if (std::none_of(out.begin(), out.end(), [&](const RankFolder& folder) {
        return is_rank_folder(path + "/" + folder.below);
      }))
    return {};
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.step != b.step ? a.step < b.step : natural_less(a.name, b.name);
  });
  return out;
}

bool is_module(std::string_view call) {
  const auto parsed = parse_msprobe_call(call);
  return parsed && parsed->kind == MsprobeCall::Kind::kModule;
}

// construct.json: which call was made in which. A function may stand before the module that called
// it.
class Construct {
 public:
  // Without the file nothing is known: every call stands alone, in the order of dump.json.
  static Result<Construct> read(const std::string& path) {
    Construct out;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return out;
    const auto text = read_text(path, kMaxConstructBytes);
    if (!text) return fail(text.error());
    if (text->empty()) return out;  // as older versions leave it where no module was recorded
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document;
    simdjson::ondemand::object calls;
    simdjson::error_code bad =
        parser.iterate(text->data(), text->size(), text->size() + kTextPaddingBytes).get(document);
    if (!bad) bad = document.get_object().get(calls);
    if (!bad) bad = out.take(calls);
    if (bad)
      return fail(Error(ErrorCode::kCorrupt, path)
                  << "is not a whole construct.json of msprobe (" << simdjson::error_message(bad)
                  << "); was the run cut short?");
    return out;
  }

  uint32_t add(std::string_view call) {
    const auto [found, is_new] =
        index_of_.try_emplace(std::string(call), static_cast<uint32_t>(calls_.size()));
    if (is_new) calls_.push_back({std::string(call), kNone, is_module(call)});
    return found->second;
  }
  std::optional<uint32_t> find(const std::string& call) const {
    const auto found = index_of_.find(call);
    return found == index_of_.end() ? std::nullopt : std::optional(found->second);
  }
  size_t size() const { return calls_.size(); }
  const std::string& call(uint32_t index) const { return calls_[index].name; }

  // The nearest call of a module around it, and the outermost; kNone for none.
  uint32_t around(uint32_t index) const {
    uint32_t found = kNone;
    each_around(index, [&](uint32_t module) {
      found = module;
      return false;
    });
    return found;
  }
  uint32_t outermost_around(uint32_t index) const {
    uint32_t found = kNone;
    each_around(index, [&](uint32_t module) {
      found = module;
      return true;
    });
    return found;
  }

  // Calls visit(module) for each call of a module around it, from the inside out, while it says so.
  template <typename Visit>
  void each_around(uint32_t index, Visit visit) const {
    for (size_t i = 0; i < kMaxAncestors; ++i) {
      index = calls_[index].parent;
      if (index == kNone || (calls_[index].is_module && !visit(index))) return;
    }
  }

  static constexpr uint32_t kNone = ~uint32_t{0};

 private:
  struct Call {
    std::string name;
    uint32_t parent;
    bool is_module;
  };

  // "Module.a.A.forward.0"; of Megatron ["Module.a.A.forward.0", 1], with the number of its batch.
  static std::string_view parent_of(simdjson::ondemand::value value) {
    std::string_view parent;
    simdjson::ondemand::array with_batch;
    if (value.get_string().get(parent) == simdjson::SUCCESS) return parent;
    if (value.get_array().get(with_batch) != simdjson::SUCCESS) return {};
    for (auto first : with_batch)
      return first.get_string().get(parent) == simdjson::SUCCESS ? parent : std::string_view();
    return {};
  }

  simdjson::error_code take(simdjson::ondemand::object calls) {
    std::vector<std::pair<uint32_t, std::string>> parents;
    for (auto entry : calls) {
      std::string_view name;
      simdjson::ondemand::value value;
      if (const auto bad = entry.unescaped_key().get(name)) return bad;
      const uint32_t index = add(name);
      if (const auto bad = entry.value().get(value)) return bad;
      if (const std::string_view parent = parent_of(value); !parent.empty())
        parents.emplace_back(index, std::string(parent));
    }
    for (const auto& [index, parent] : parents) calls_[index].parent = add(parent);
    return simdjson::SUCCESS;
  }

  std::vector<Call> calls_;
  std::unordered_map<std::string, uint32_t> index_of_;
};

// One tensor of a rank's folder.
struct Found {
  uint32_t round;  // in its step
  NamedRun::Tensor tensor;
};

// Which round every call of a folder belongs to, and what it is called there.
class Calls {
 public:
  struct Named {
    std::string operation;  // empty: not used
    uint32_t round = 0;
    bool is_done = false;
  };

  Calls(const Construct& construct, NamedRun& run) : construct_(construct), run_(run) {
    using Pass = MsprobeCall::Pass;
    named_.resize(construct.size());
    for (uint32_t i = 0; i < construct.size(); ++i)
      if (const auto call = parse_msprobe_call(construct.call(i));
          call && call->kind == MsprobeCall::Kind::kModule)
        modules_.insert(module_operation(*call));
    // Backward calls take the round of their forward call, gradients that of a backward call.
    for (const Pass pass : {Pass::kForward, Pass::kBackward, Pass::kGradients})
      for (uint32_t i = 0; i < construct.size(); ++i) take(i, pass);
  }

  const Named& operator[](uint32_t index) const { return named_[index]; }

 private:
  // What is around a call gets its name first.
  void take(uint32_t index, MsprobeCall::Pass pass) {
    std::vector<uint32_t> inside_out = {index};
    construct_.each_around(index, [&](uint32_t module) {
      if (named_[module].is_done) return false;
      inside_out.push_back(module);
      return true;
    });
    for (auto each = inside_out.rbegin(); each != inside_out.rend(); ++each) {
      const auto call = parse_msprobe_call(construct_.call(*each));
      if (!call || call->pass != pass || named_[*each].is_done) continue;
      named_[*each].is_done = true;
      named_[*each].round = round_of(*each, *call);
      if (pass == MsprobeCall::Pass::kForward && call->kind == MsprobeCall::Kind::kModule)
        latest_ = named_[*each].round;
      name(*each, *call);
    }
  }

  uint32_t round_of(uint32_t index, const MsprobeCall& call) {
    const std::string& key = construct_.call(index);
    if (call.pass == MsprobeCall::Pass::kGradients) return round_of_gradients(key, call);
    // The outermost module, which may be the call itself.
    uint32_t outermost = construct_.outermost_around(index);
    if (outermost == Construct::kNone && call.kind == MsprobeCall::Kind::kModule) outermost = index;
    uint32_t round = 0;
    if (call.pass == MsprobeCall::Pass::kBackward) {
      if (const auto forward = construct_.find(forward_of(key))) round = named_[*forward].round;
    } else {
      // A function outside of all modules counts how often it was called, and not the rounds.
      round = outermost == Construct::kNone
                  ? latest_
                  : parse_msprobe_call(construct_.call(outermost))->number;
    }
    if (call.kind == MsprobeCall::Kind::kModule)
      rounds_of_[{std::string(key, 0, key.rfind(word_of(call.pass))), call.pass}].insert(round);
    return round;
  }

  // Gradients count how often they were computed, once in a round, and not the calls of the module.
  // Without a number, as older versions write them, they are the last.
  uint32_t round_of_gradients(const std::string& key, const MsprobeCall& call) const {
    const std::string module(key, 0, key.rfind(word_of(call.pass)));
    for (const auto pass : {MsprobeCall::Pass::kBackward, MsprobeCall::Pass::kForward}) {
      const auto found = rounds_of_.find({module, pass});
      if (found == rounds_of_.end()) continue;
      const std::set<uint32_t>& rounds = found->second;
      if (!call.is_numbered) return *rounds.rbegin();
      if (call.number < rounds.size()) return *std::next(rounds.begin(), call.number);
    }
    return call.number;
  }

  static std::string_view word_of(MsprobeCall::Pass pass) {
    return pass == MsprobeCall::Pass::kForward    ? "forward"
           : pass == MsprobeCall::Pass::kBackward ? "backward"
                                                  : "parameters_grad";
  }

  // "Module.a.Linear.forward.2" of "Module.a.Linear.backward.2", and of a function likewise.
  static std::string forward_of(const std::string& key) {
    const std::string_view word = word_of(MsprobeCall::Pass::kBackward);
    const size_t at = key.rfind(word);
    return key.substr(0, at) + "forward" + key.substr(at + word.size());
  }

  static std::string_view root_of(const MsprobeCall& call) {
    return call.pass == MsprobeCall::Pass::kForward ? kForwardRoot : kBackwardRoot;
  }
  static std::string module_operation(const MsprobeCall& call) {
    return std::string(root_of(call)) + "." + folder_safe(call.path);
  }

  void name(uint32_t index, const MsprobeCall& call) {
    Named& out = named_[index];
    const std::string root(root_of(call));
    const uint32_t around = construct_.around(index);
    const std::string& outer = around == Construct::kNone ? root : named_[around].operation;
    std::string parent;
    if (call.kind == MsprobeCall::Kind::kModule) {
      out.operation = module_operation(call);
      parent = module_around(out.operation);
      if (outer.substr(0, outer.find('#')) == parent) parent = outer;
    } else {
      // What ran outside of all modules is mostly generate()'s own, and no part of the model.
      if (around == Construct::kNone && !modules_.empty()) return;
      parent = outer.empty() ? root : outer;
      out.operation = parent + "." + folder_safe(call.path);
    }
    // Gradients belong to what the backward pass of the module is called.
    if (call.pass != MsprobeCall::Pass::kGradients) out.operation = numbered(out, call);
    run_.add_operation(out.operation, call.type, parent, index);
  }

  // The name with the number of the call in its round: "root.a#1", and "root.a.silu.1" of a
  // function, which never takes the name of a module.
  std::string numbered(const Named& named, const MsprobeCall& call) {
    const bool is_call_of_module = call.kind == MsprobeCall::Kind::kModule;
    for (;;) {
      const uint32_t number = seen_[{named.operation, named.round, is_call_of_module}]++;
      std::string out = named.operation;
      if (number > 0) out += (is_call_of_module ? "#" : ".") + std::to_string(number);
      if (is_call_of_module || !modules_.contains(out)) return out;
    }
  }

  const Construct& construct_;
  NamedRun& run_;
  std::vector<Named> named_;
  std::set<std::string> modules_;  // what they are called, without numbers
  // How often a name was in a round; whether it is a module's.
  std::map<std::tuple<std::string, uint32_t, bool>, uint32_t> seen_;
  // In which rounds "Module.a.Linear." was called.
  std::map<std::pair<std::string, MsprobeCall::Pass>, std::set<uint32_t>> rounds_of_;
  uint32_t latest_ = 0;  // round
};

// Reads one folder: adds its operations to `run` and says which tensors there are.
class FolderReader {
 public:
  FolderReader(std::string path, NamedRun& run, std::vector<Error>& problems)
      : path_(std::move(path)), run_(run), problems_(problems) {}

  Result<std::vector<Found>> read() {
    const auto file = MappedFile::open(path_ + "/" + std::string(kDumpFile));
    if (!file) return fail(file.error());
    auto construct = Construct::read(path_ + "/" + std::string(kConstructFile));
    if (!construct) {
      problems_.push_back(construct.error());
      construct = Construct();
    }
    // Two passes: names depend on which calls there are, and how many things each put out.
    std::unordered_map<std::string, bool> has_many_outputs;
    auto read = formats::msprobe_json::each_tensor(**file, [&](const Item& item) {
      if (parse_msprobe_call(item.key)) construct->add(item.key);
      if (item.part == "output" && item.place != "0" && !item.place.starts_with("0."))
        has_many_outputs[std::string(item.key)] = true;
    });
    if (!read) return fail(read.error());
    const Calls calls(*construct, run_);
    const auto data = list_folder(path_ + "/" + std::string(kDataFolder));
    std::vector<Found> out;
    size_t unknown = 0;
    size_t unnamed = 0;
    read = formats::msprobe_json::each_tensor(**file, [&](const Item& item) {
      const auto call = parse_msprobe_call(item.key);
      if (!call) {
        ++unnamed;
        return;
      }
      const std::string tensor =
          tensor_name(item, call->pass, !has_many_outputs.contains(std::string(item.key)));
      const Calls::Named& named = calls[*construct->find(std::string(item.key))];
      if (tensor.empty() || named.operation.empty()) return;
      const std::string data_name(item.data_name);
      const bool has_data = !data_name.empty() && data && has_entry(*data, data_name);
      if (!has_data && !item.description) {
        ++unknown;
        return;
      }
      out.push_back(
          {named.round,
           {named.operation, tensor,
            has_data ? std::string(kDataFolder) + "/" + data_name : std::string(kDumpFile),
            has_data ? std::string() : item.name(), has_data ? Kept::kBytes : Kept::kStatistics}});
    });
    if (unknown > 0)
      problems_.push_back(Error(ErrorCode::kUnsupported, (*file)->path())
                          << "holds " << unknown
                          << " tensors of types that ait does not know; they are not used");
    if (unnamed > 0)
      problems_.push_back(Error(ErrorCode::kUnsupported, (*file)->path())
                          << "holds " << unnamed
                          << " tensors of calls whose names ait does not understand; they are not "
                             "used");
    return out;
  }

 private:
  std::string path_;
  NamedRun& run_;
  std::vector<Error>& problems_;
};

struct ReadFolder {
  size_t rank;
  uint32_t step;
  std::string below;
  std::vector<Found> tensors;
};

// Which round of the recording a round of a step is. A step is a round where none holds several;
// else rounds count through all steps.
std::map<std::pair<uint32_t, uint32_t>, size_t> name_rounds(const std::vector<ReadFolder>& folders,
                                                            Recording& recording) {
  std::map<uint32_t, std::set<uint32_t>> rounds_of;
  for (const ReadFolder& folder : folders)
    for (const Found& found : folder.tensors) rounds_of[folder.step].insert(found.round);
  const bool steps_are_rounds =
      std::all_of(rounds_of.begin(), rounds_of.end(),
                  [](const auto& step) { return *step.second.rbegin() == 0; });
  std::map<std::pair<uint32_t, uint32_t>, size_t> out;
  uint64_t before = 0;
  for (const auto& [step, rounds] : rounds_of) {
    for (const uint32_t round : rounds) {
      out[{step, round}] = recording.rounds.size();
      recording.rounds.push_back(std::to_string(steps_are_rounds ? step : before + round));
    }
    before += uint64_t{*rounds.rbegin()} + 1;
  }
  return out;
}

}  // namespace

std::optional<MsprobeCall> parse_msprobe_call(std::string_view key) {
  MsprobeCall out;
  if (key.size() > kMaxKeyBytes) return std::nullopt;
  std::string_view rest = key;
  std::string_view last = take_last(rest);
  std::string_view before;
  if (pass_of(last) == MsprobeCall::Pass::kGradients) {
    out.is_numbered = false;
    before = std::exchange(last, "0");
  } else {
    before = take_last(rest);
  }
  const size_t dot = rest.find('.');
  const std::string_view prefix = rest.substr(0, dot);
  if (prefix == "Module" || prefix == "Cell") {
    const auto number = number_of(last);
    const auto pass = pass_of(before);
    if (!number || !pass || dot == std::string_view::npos) return std::nullopt;
    out.number = *number;
    out.pass = *pass;
    out.type = take_last(rest);
    out.path = rest.size() > dot ? rest.substr(dot + 1) : std::string_view();
    if (out.path.empty() || out.type.empty()) return std::nullopt;
    return out;
  }
  const auto number = number_of(before);
  const auto pass = pass_of(last);
  if (!number || !pass || dot == std::string_view::npos) return std::nullopt;
  out.kind = MsprobeCall::Kind::kFunction;
  out.number = *number;
  out.pass = *pass;
  out.type = rest;
  out.path = rest.substr(dot + 1);
  if (out.path.empty()) return std::nullopt;
  return out;
}

bool is_msprobe_dump(const std::string& path) { return !find_folders(path).empty(); }

Result<Recording> read_msprobe_dump(const std::string& path) {
  std::vector<RankFolder> found = find_folders(path);
  if (found.empty())
    return fail(Error(ErrorCode::kUsage, path)
                << "is not a dump of msprobe: expected step{n}/rank{r}/dump.json");
  Recording recording;
  const auto is_proc = [](const RankFolder& folder) { return is_proc_name(folder.name); };
  // Beside ranks, these are processes that prepare data.
  if (!std::all_of(found.begin(), found.end(), is_proc))
    if (const size_t erased = std::erase_if(found, is_proc); erased > 0)
      recording.problems.push_back(Error(ErrorCode::kUnsupported, path)
                                   << "holds " << erased
                                   << " folders proc{pid} beside those of ranks: processes that "
                                      "have no rank; they are not used");
  recording.root = path;
  recording.traits = kTorchTraits;
  recording.traits.words = "an msprobe dump";
  std::set<std::string,
           decltype([](const std::string& a, const std::string& b) { return natural_less(a, b); })>
      names;
  for (const RankFolder& folder : found) names.insert(folder.name);
  for (const std::string& name : names) {
    const auto number = number_after(name, "rank");
    const std::string pid = number ? std::string() : name.substr(4);
    recording.ranks.push_back(
        {path, name, std::to_string(number.value_or(recording.ranks.size())), pid});
  }

  NamedRun run;
  std::vector<ReadFolder> folders;
  for (const RankFolder& folder : found) {
    const std::string full = folder.below.empty() ? path : path + "/" + folder.below;
    FolderReader reader(full, run, recording.problems);
    auto tensors = reader.read();
    if (!tensors && found.size() == 1) return fail(tensors.error());
    if (!tensors) {
      recording.problems.push_back(tensors.error());
      continue;
    }
    const auto rank = static_cast<size_t>(std::distance(names.begin(), names.find(folder.name)));
    folders.push_back({rank, folder.step, folder.below, std::move(*tensors)});
  }
  if (folders.empty()) return fail(recording.problems.front());

  const auto round_of = name_rounds(folders, recording);
  for (ReadFolder& folder : folders)
    for (Found& found_tensor : folder.tensors)
      run.add(folder.rank, round_of.at({folder.step, found_tensor.round}), folder.below,
              std::move(found_tensor.tensor));
  run.finish(recording);
  return recording;
}

}  // namespace ait::capture
