#include "convert/run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "capture/layout.h"
#include "capture/torch_dump.h"
#include "convert/table.h"
#include "formats/registry.h"
#include "formats/write.h"
#include "record/dump_names.h"

namespace ait::convert {
namespace {

using capture::Capture;
using capture::Layout;
using capture::Operation;
using capture::Recording;
using capture::Role;
using capture::RunKind;
using capture::TensorRecord;

// A file of statistics holds those of a whole run: it is opened once.
class Files {
 public:
  struct Open {
    std::unique_ptr<formats::TensorFile> file;
    std::unordered_map<std::string, size_t> index_of;
  };

  Result<std::pair<const formats::TensorFile*, size_t>> find(const TensorRecord& record) {
    if (path_ != record.path || record.member.empty()) {
      auto opened = formats::open_tensor_file(record.path);
      if (!opened) return fail(opened.error());
      open_ = {std::move(*opened), {}};
      path_ = record.path;
      for (size_t i = 0; i < open_.file->size(); ++i)
        open_.index_of.emplace(open_.file->name(i), i);
    }
    if (record.member.empty() && open_.file->size() == 1)
      return std::pair<const formats::TensorFile*, size_t>(open_.file.get(), 0);
    if (record.member.empty())
      return fail(Error(ErrorCode::kUsage, record.path)
                  << "holds " << open_.file->size() << " tensors, and should hold one");
    const auto found = open_.index_of.find(record.member);
    if (found == open_.index_of.end())
      return fail(Error(ErrorCode::kNotFound, record.path)
                  << "holds no tensor named " << printable(record.member));
    return std::pair<const formats::TensorFile*, size_t>(open_.file.get(), found->second);
  }

 private:
  std::string path_;
  Open open_;
};

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + '"';
}

Result<void> write_text(const std::string& folder, const std::string& name,
                        const std::string& text) {
  auto file = OutputFile::create(folder, name);
  if (!file) return fail(file.error());
  if (auto ok = file->write(text); !ok) return fail(ok.error());
  auto path = file->finish_as(folder + "/" + name);
  if (!path) return fail(path.error());
  return {};
}

class Writer {
 public:
  Writer(const std::string& to, const std::atomic<bool>& stop,
         const std::function<void(const Error&)>& warn)
      : stop_(stop), warn_(warn) {
    counts_.folder = to + "/" + record::kDumpFolder;
  }

  void add(const TensorRecord& record, const std::string& rank, const std::string& tensor) {
    if (stop_) return;
    const std::string folder = rank_folder(rank) + "/" + record.round + "/" + record.operation;
    if (folder != table_folder_) flush();
    const auto found = files_.find(record);
    if (!found) return leave(found.error());
    const auto& [file, index] = *found;
    auto loaded = file->load(index);
    if (loaded) {
      const formats::NamedTensor named{"", std::move(*loaded)};
      std::error_code ignored;
      std::filesystem::create_directories(folder, ignored);
      const auto written = formats::write_tensor_file(folder + "/" + tensor + ".pth", {&named, 1},
                                                      formats::FileFormat::kTorch);
      if (!written) return leave(written.error());
      ++counts_.tensors;
      return;
    }
    const auto description = file->describe(index);
    if (!description || description->has_data) return leave(loaded.error());
    table_folder_ = folder;
    table_ += table_line(record.operation, record.type, tensor, description->dtype,
                         description->shape, description->statistics);
    ++counts_.statistics;
  }

  void flush() {
    if (!table_.empty())
      if (auto written = write_text(table_folder_, record::kStatisticsFile,
                                    std::string(kTableHeader) + table_);
          !written)
        warn_(written.error());
    table_.clear();
    table_folder_.clear();
  }

  std::string rank_folder(const std::string& rank) const {
    return counts_.folder + "/" + record::kTorchTensorsFolder + "/" + rank;
  }

  RunCounts counts() && { return std::move(counts_); }

 private:
  void leave(const Error& error) {
    ++counts_.left;
    warn_(error);
  }

  const std::atomic<bool>& stop_;
  const std::function<void(const Error&)>& warn_;
  RunCounts counts_;
  Files files_;
  std::string table_folder_;
  std::string table_;
};

// model_tree.json: modules inside each other by their names, with when each of their calls was.
class Tree {
 public:
  explicit Tree(const Recording& recording) {
    for (size_t i = 0; i < recording.operations.size(); ++i) {
      const Operation& operation = recording.operations[i];
      // "root.a#1" is a call of root.a; "root.a#1.silu" is a function in it.
      size_t hash = operation.name.rfind('#');
      if (hash != std::string::npos &&
          operation.name.find_first_not_of("0123456789", hash + 1) != std::string::npos)
        hash = std::string::npos;
      const std::string name = operation.name.substr(0, hash);
      Node& node = nodes_[name];
      if (node.type.empty()) node.type = operation.type;
      node.calls.push_back(i);
      has_more_calls_ |= hash != std::string::npos;
      order_.push_back(name);
    }
    for (const std::string& name : order_) {
      const size_t dot = name.rfind('.');
      if (dot == std::string::npos) continue;
      const auto around = nodes_.find(name.substr(0, dot));
      if (around == nodes_.end()) continue;
      std::vector<std::string>& children = around->second.children;
      if (std::find(children.begin(), children.end(), name) == children.end())
        children.push_back(name);
    }
  }

  std::string text() const { return nodes_.contains("root") ? text_of("root") + "\n" : ""; }

 private:
  struct Node {
    std::string type;
    std::vector<size_t> calls;
    std::vector<std::string> children;
  };

  // As deep as names have dots.
  std::string text_of(const std::string& name) const {
    const Node& node = nodes_.at(name);
    std::string out = "{\"name\": " + json_text(name) + ", \"type\": " + json_text(node.type) +
                      ", \"order\": " + std::to_string(node.calls.front());
    if (has_more_calls_) {
      out += ", \"calls\": [";
      for (size_t i = 0; i < node.calls.size(); ++i)
        out += (i > 0 ? ", " : "") + std::to_string(node.calls[i]);
      out += "]";
    }
    out += ", \"children\": [";
    for (size_t i = 0; i < node.children.size(); ++i)
      out += (i > 0 ? ", " : "") + text_of(node.children[i]);
    return out + "]}";
  }

  std::map<std::string, Node> nodes_;
  std::vector<std::string> order_;
  bool has_more_calls_ = false;
};

Result<RunCounts> convert_recording(const Recording& recording, Writer writer,
                                    const std::function<void(const Error&)>& warn) {
  if (recording.traits.identity != capture::Traits::Identity::kNames)
    return fail(Error(ErrorCode::kUsage, recording.root)
                << "is " << recording.traits.words
                << ", whose operations are no modules of a torch model; --to dump takes runs of "
                   "msprobe, SGLang, transformers and Polygraphy");
  for (const Error& problem : recording.problems) warn(problem);
  const std::string tree = Tree(recording).text();
  for (size_t rank = 0; rank < recording.ranks.size(); ++rank) {
    const capture::Rank& from = recording.ranks[rank];
    const std::string name = from.device + "_" + (from.pid.empty() ? "0" : from.pid);
    if (!tree.empty())
      if (auto written = write_text(writer.rank_folder(name), record::kModelTreeFile, tree);
          !written)
        return fail(written.error());
    for (size_t round = 0; round < recording.rounds.size(); ++round)
      for (uint32_t slot = 0; slot < recording.slots.size(); ++slot)
        if (recording.has(rank, round, slot))
          writer.add(recording.record(rank, round, slot), name, recording.slots[slot].tensor());
  }
  writer.flush();
  return std::move(writer).counts();
}

// Each name is an operation with one output.
RunCounts convert_records(const Capture& capture, Writer writer) {
  for (TensorRecord record : capture.records) {
    std::string name = record.operation;
    std::replace(name.begin(), name.end(), '/', '_');
    record.operation = "root." + name;
    writer.add(record, "0_0", "output");
  }
  writer.flush();
  return std::move(writer).counts();
}

}  // namespace

Result<RunCounts> convert_run(const std::string& from, const std::string& to,
                              const std::atomic<bool>& stop,
                              const std::function<void(const Error&)>& warn) {
  if (capture::is_torch_dump(from))
    return fail(Error(ErrorCode::kUsage, from) << "is a torch dump already");
  const Layout* layout = capture::find_layout(from, RunKind::kOperations, Role::kGolden);
  const bool is_file = std::filesystem::is_regular_file(from);
  if (layout == nullptr && is_file)
    layout = capture::find_layout(from, RunKind::kWeights, Role::kGolden);
  if (layout == nullptr)
    return fail(Error(ErrorCode::kUsage, from)
                << "holds no run that ait knows; --to dump takes runs of msprobe, SGLang, "
                   "transformers and Polygraphy");
  auto run = layout->read(from);
  if (!run) return fail(run.error());
  Writer writer(to, stop, warn);
  if (const auto* recording = std::get_if<Recording>(&*run))
    return convert_recording(*recording, std::move(writer), warn);
  return convert_records(std::get<Capture>(*run), std::move(writer));
}

}  // namespace ait::convert
