#include "graph/finish.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "graph/atb_json.h"
#include "graph/atb_reports.h"
#include "graph/onnx.h"
#include "record/dump_names.h"

namespace ait::graph {
namespace {

namespace fs = std::filesystem;

// Of file systems; the ending has to fit in.
constexpr size_t kMaxFileNameBytes = 255;

struct RawFile {
  uint64_t sequence = 0;
  std::string path;
};

struct Process {
  std::vector<RawFile> graphs;
  std::vector<RawFile> models;
};

std::optional<uint64_t> number(std::string_view digits) {
  uint64_t value = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || bad != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return value;
}

// As record/claim.h names processes: "4711", "4711_1".
bool is_process(std::string_view name) {
  const size_t underscore = std::min(name.find('_'), name.size());
  return number(name.substr(0, underscore)) &&
         (underscore == name.size() || number(name.substr(underscore + 1)));
}

// Notes the file if its name is {process}.graph.{seq}.json or {process}.model.{seq}.json.
void sort_in(const fs::path& path, std::map<std::string, Process>& processes) {
  const std::string name = path.filename().native();
  constexpr std::string_view kEnd = ".json";
  if (!name.ends_with(kEnd)) return;
  const std::string_view stem = std::string_view(name).substr(0, name.size() - kEnd.size());
  const size_t first = stem.find('.');
  const size_t last = stem.rfind('.');
  if (first == last) return;
  const std::string process(stem.substr(0, first));
  const std::string_view kind = stem.substr(first + 1, last - first - 1);
  const auto sequence = number(stem.substr(last + 1));
  if (!is_process(process) || !sequence) return;
  if (kind == record::kGraphReport) processes[process].graphs.push_back({*sequence, path.native()});
  if (kind == record::kModelReport) processes[process].models.push_back({*sequence, path.native()});
}

bool is_file_name(std::string_view name) {
  constexpr std::string_view kEnding = ".json";
  return !name.empty() && name.size() + kEnding.size() <= kMaxFileNameBytes && name[0] != '.' &&
         std::none_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte == '/' || byte == 0x7f || byte < 0x20;
         });
}

class Finisher {
 public:
  Finisher(std::string dump_root, const FinishOptions& options)
      : dump_root_(std::move(dump_root)), options_(options) {}

  void process(const std::string& name, Process& files) {
    const std::string layer_folder = folder_of(record::kLayerFolder, name);
    const std::string model_folder = folder_of(record::kModelFolder, name);
    read_table(layer_folder + "x.json");
    const auto graphs = read_reports(files.graphs);
    if (options_.layers)
      for (const auto& [report, path] : graphs)
        write(name_tensors(report.json, report.name), layer_folder, report.name, path,
              finished_.layers);
    if (!options_.models) return;
    const auto models = read_reports(files.models);
    const auto merged = merge_models(reports_of(graphs), reports_of(models));
    for (size_t i = 0; i < models.size(); ++i)
      write(merged[i], model_folder, models[i].first.name, models[i].second, finished_.models);
  }

  FinishedTopologies take() { return std::move(finished_); }

 private:
  using Reports = std::vector<std::pair<Report, std::string>>;  // and the path of each

  static std::vector<Report> reports_of(const Reports& reports) {
    std::vector<Report> only;
    for (const auto& [report, path] : reports) only.push_back(report);
    return only;
  }

  std::string folder_of(const char* kind, const std::string& process) const {
    return dump_root_ + "/" + kind + "/" + process + "/";
  }

  void problem(Error error) { finished_.problems.push_back(std::move(error)); }

  void read_table(const std::string& json_path) {
    table_.reset();
    const auto path = options_.onnx ? find_operation_table(json_path) : std::nullopt;
    if (!path) return;
    if (auto table = ShapeTable::read(*path))
      table_ = std::move(*table);
    else
      problem(table.error());
  }

  // In the order of delivery; of two under one name the first.
  Reports read_reports(std::vector<RawFile>& files) {
    std::sort(files.begin(), files.end(),
              [](const RawFile& a, const RawFile& b) { return a.sequence < b.sequence; });
    Reports reports;
    std::map<std::string, std::string> known;
    for (const RawFile& raw : files) {
      const auto file = MappedFile::open(raw.path);
      if (!file) {
        problem(file.error());
        continue;
      }
      const auto bytes = (*file)->bytes();
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const size_t line_end = text.find('\n');
      if (line_end == std::string_view::npos || text.size() > kMaxJsonBytes) {
        problem(Error(ErrorCode::kCorrupt, raw.path)
                << "is not a report that the probe left: a name, a line end and JSON of at most "
                << (kMaxJsonBytes >> 20) << " MiB");
        continue;
      }
      Report report{std::string(text.substr(0, line_end)), std::string(text.substr(line_end + 1))};
      const auto [twin, is_new] = known.try_emplace(report.name, report.json);
      if (is_new)
        reports.emplace_back(std::move(report), raw.path);
      else if (twin->second != report.json)
        problem(Error(ErrorCode::kCorrupt, raw.path)
                << printable(report.name)
                << " was reported before with another content; the first report is kept");
    }
    return reports;
  }

  void write(const Result<Topology>& topology, const std::string& folder, const std::string& name,
             const std::string& raw_path, size_t& counter) {
    if (!topology) {
      Error error = topology.error();
      return problem(error.set_path(raw_path));
    }
    if (!is_file_name(name))
      return problem(Error(ErrorCode::kRefused, raw_path)
                     << "the reported name " << printable(name)
                     << " cannot be the name of a file, so nothing was written for it");
    const std::string path = folder + name + ".json";
    if (auto written = write_bytes(path, to_json(*topology)); !written)
      return problem(written.error());
    ++counter;
    if (!options_.onnx) return;
    const auto bytes = to_onnx(*topology, kAllLevels, table_ ? &*table_ : nullptr);
    if (!bytes) return problem(bytes.error());
    if (auto written = write_bytes(folder + name + ".onnx", *bytes); !written)
      return problem(written.error());
    ++finished_.onnx;
  }

  std::string dump_root_;
  FinishOptions options_;
  FinishedTopologies finished_;
  std::optional<ShapeTable> table_;
};

}  // namespace

Result<FinishedTopologies> finish_topologies(const std::string& scratch_folder,
                                             const std::string& dump_root,
                                             const FinishOptions& options) {
  std::map<std::string, Process> processes;
  std::error_code bad;
  for (fs::directory_iterator entry(scratch_folder, bad), end; !bad && entry != end;
       entry.increment(bad))
    sort_in(entry->path(), processes);
  if (bad)
    return fail(Error(ErrorCode::kUnreadable, scratch_folder)
                << "cannot be looked through for topologies: " << bad.message());
  Finisher finisher(dump_root, options);
  for (auto& [name, files] : processes) finisher.process(name, files);
  return finisher.take();
}

}  // namespace ait::graph
