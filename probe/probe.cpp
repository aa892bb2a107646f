#include "probe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "process.h"
#include "record/atb_bin_encoder.h"
#include "record/dump_names.h"

namespace ait::probe {
namespace {

using record::ByteBuffer;
using record::Encoding;
using record::Job;
using record::WriteStatus;

constexpr const char* kTableHeader =
    "CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|"
    "OutShape|DataGenType|DataGenRange|InTensorFile|OutTensorFile|TestType|TestLevel|FromModel|"
    "SocVersion|ExpectedError\n";
constexpr WriteStatus kNoOutput = {ENOENT, "find out where to write: ATB_OUTPUT_DIR is not set"};
constexpr WriteStatus kBadPath = {EINVAL, "use a path that leads out of the folder"};
constexpr WriteStatus kBadTensor = {EINVAL, "make sense of the tensor's description"};

struct Path {
  char text[PATH_MAX] = "";
};

bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos)
    return false;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const size_t length = slash == std::string_view::npos ? path.size() : slash;
    if (length == 2 && path[0] == '.' && path[1] == '.') return false;
    path.remove_prefix(slash == std::string_view::npos ? length : length + 1);
  }
  return true;
}

// A path of the library's, {device}_{pid}/…, with the number that this process has behind its pid.
struct PlacedPath {
  std::string_view device;  // and pid
  char number[24] = "";
  std::string_view rest;

  PlacedPath(const Process& self, std::string_view path) {
    const size_t slash = path.find('/');
    const size_t length = slash == std::string_view::npos ? 0 : slash;
    device = {path.data(), length};
    rest = {path.data() + length, path.size() - length};
    if (self.name.number > 0)
      std::snprintf(number, sizeof number, "_%llu",
                    static_cast<unsigned long long>(self.name.number));
  }
};

// `{output}/ait_dump/{kind}/{path}` for a path that the library gave.
WriteStatus make_path(const char* kind, std::string_view path, Path& file) {
  const char* output = settings().output;
  if (output == nullptr) return kNoOutput;
  const PlacedPath placed(process(), path);
  const int length =
      std::snprintf(file.text, sizeof file.text, "%s/%s/%s/%.*s%s%.*s", output, record::kDumpFolder,
                    kind, static_cast<int>(placed.device.size()), placed.device.data(),
                    placed.number, static_cast<int>(placed.rest.size()), placed.rest.data());
  if (length < 0 || static_cast<size_t>(length) >= sizeof file.text)
    return {ENAMETOOLONG, "use the path"};
  return stays_inside(path) ? WriteStatus{} : kBadPath;
}

void tensor_done(void* file_bytes, const char* path, WriteStatus status) {
  Process& self = process();
  const auto bytes = reinterpret_cast<uintptr_t>(file_bytes);
  if (status.ok()) {
    record::add(self.ledger->written_bytes, bytes);
    if (status.replaced) record::add(self.ledger->replaced, 1);
    record::add(self.ledger->written, 1);
    return;
  }
  record::add(self.ledger->failed_bytes, bytes);
  record::add(self.ledger->failed, 1);
  report_failure(self, status, path);
}

void record_done(void*, const char* path, WriteStatus status) {
  Process& self = process();
  if (status.replaced) record::add(self.ledger->records_replaced, 1);
  record::add(status.ok() ? self.ledger->records_written : self.ledger->records_failed, 1);
  if (!status.ok()) report_failure(self, status, path);
}

// A file of `header` and `body`, counted as a record.
void save_record(WriteStatus status, const Path& path, std::string_view header, const void* body,
                 uint64_t body_bytes) {
  record::add(process().ledger->records_announced, 1);
  if (!status.ok()) return record_done(nullptr, path.text, status);
  Job job;
  job.path = path.text;
  job.encoding = Encoding::kBytes;
  job.header = header.data();
  job.header_bytes = header.size();
  job.image.data = body;
  job.image.bytes = body_bytes;
  job.done = &record_done;
  submit(job);
}

bool is_text_of_integers(std::string_view text, bool several) {
  constexpr size_t kMaxBytes = 200;  // eight dimensions of twenty digits
  for (const char c : text)
    if (!(c >= '0' && c <= '9') && c != '-' && !(several && c == ',')) return false;
  return text.size() <= kMaxBytes && (several || !text.empty());
}

// Text for a cell: nothing in it may end the cell or the line.
void add_cell(ByteBuffer& line, std::string_view text) {
  size_t clean = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool separator = text[i] == '|';
    if (!separator && text[i] != '\n' && text[i] != '\r') continue;
    line.add(text.data() + clean, i - clean);
    // In a parameter's JSON the separator can only stand in a string, where this says the same.
    line.add_text(separator ? "\\u007c" : " ");
    clean = i + 1;
  }
  line.add(text.data() + clean, text.size() - clean);
}

void add_list(ByteBuffer& line, const RowTensors& tensors,
              std::string_view (*cell)(const RowTensor&)) {
  for (size_t i = 0; i < tensors.count; ++i) {
    if (i > 0) line.add_text(";");
    add_cell(line, cell(tensors.tensor_at(tensors.context, i)));
  }
  line.add_text("|");
}

// Relative to the dump's root, so that the folder can travel.
void add_paths(ByteBuffer& line, const Process& self, const RowTensors& tensors) {
  for (size_t i = 0; i < tensors.count; ++i) {
    if (i > 0) line.add_text(";");
    const RowTensor tensor = tensors.tensor_at(tensors.context, i);
    const PlacedPath placed(self, tensor.path);
    line.add_text(record::kTensorsFolder);
    line.add_text("/");
    add_cell(line, placed.device);
    line.add_text(placed.number);
    add_cell(line, placed.rest);
  }
  line.add_text("|");
}

void add_tensors(ByteBuffer& line, const RowTensors& tensors) {
  line.add_decimal(static_cast<int64_t>(tensors.count));
  line.add_text("|");
  add_list(line, tensors, [](const RowTensor& tensor) { return tensor.type; });
  add_list(line, tensors, [](const RowTensor& tensor) { return tensor.format; });
  add_list(line, tensors, [](const RowTensor& tensor) { return tensor.shape; });
}

void make_row(ByteBuffer& line, const Process& self, uint64_t number, std::string_view operation,
              std::string_view parameter, const RowTensors& inputs, const RowTensors& outputs) {
  line.add_decimal(static_cast<int64_t>(number));
  line.add_text("|");
  add_cell(line, operation);
  line.add_decimal(static_cast<int64_t>(number));
  line.add_text("|");
  add_cell(line, operation);
  line.add_text("|");
  add_cell(line, parameter);
  line.add_text("|");
  add_tensors(line, inputs);
  add_tensors(line, outputs);
  add_list(line, inputs, [](const RowTensor&) { return std::string_view("customize"); });
  line.add_text(" |");
  add_paths(line, self, inputs);
  add_paths(line, self, outputs);
  line.add_text(" | | | |NO_ERROR\n");
}

void count_line(Process& self, WriteStatus status, const char* path) {
  record::add(status.ok() ? self.ledger->lines_written : self.ledger->lines_failed, 1);
  if (!status.ok()) report_failure(self, status, path);
}

// cpu_profiling/{TIMESTAMP} belongs to the first process that makes it.
void choose_statistics_folder(Process& self) {
  const Settings& wanted = settings();
  char* name = self.statistics_folder;
  constexpr size_t kBytes = sizeof self.statistics_folder;
  if (wanted.timestamp == nullptr) {
    std::snprintf(name, kBytes, "%s", self.name.text);
    return;
  }
  std::snprintf(name, kBytes, "%s", wanted.timestamp);
  Path path;
  std::snprintf(path.text, sizeof path.text, "%s/%s/%s/%s", wanted.output, record::kDumpFolder,
                record::kCpuProfilingFolder, name);
  if (record::create_parents(path.text).ok() && ::mkdir(path.text, 0750) == 0)
    __atomic_store_n(&self.ledger->owns_times, 1, __ATOMIC_RELAXED);
  else
    std::snprintf(name, kBytes, "%s_%s", wanted.timestamp, self.name.text);
}

void save_graph(const char* kind, uint64_t& next, std::string_view name, std::string_view json) {
  Process& self = process();
  const Settings& wanted = settings();
  if (wanted.dry_run) return;
  Path path;
  WriteStatus status;
  if (wanted.scratch == nullptr)
    status = {ENOENT, "store a topology, which needs `ait llm dump`: AIT_PROBE_SCRATCH is not set"};
  else if (const int length = std::snprintf(
               path.text, sizeof path.text, "%s/%s.%s.%06llu.json", wanted.scratch, self.name.text,
               kind,
               static_cast<unsigned long long>(__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)));
           length < 0 || static_cast<size_t>(length) >= sizeof path.text)
    status = {ENAMETOOLONG, "use the path"};
  ByteBuffer header;
  header.add(name.data(), name.size());
  header.add_text("\n");
  if (header.out_of_memory()) status = {ENOMEM, "set memory aside"};
  save_record(status, path, {header.data(), header.size()}, json.data(), json.size());
}

// Under `lines_mutex`.
bool is_reported(const Process& self, std::string_view model) {
  for (const ModelName* name = self.models; name != nullptr; name = name->next)
    if (std::string_view(name->text, name->bytes) == model) return true;
  return false;
}

}  // namespace

bool is_operation_wanted(const int64_t* ids, size_t count, std::string_view type) {
  const Settings& wanted = settings();
  if (!wanted.tensors) return false;
  Process& self = process();
  const bool yes = wants_operation(wanted, ids, count, type,
                                   {self.ledger->ids_matched, record::Ledger::kMatchWords},
                                   {self.ledger->names_matched, record::Ledger::kMatchWords});
  record::add(self.ledger->operations_asked, 1);
  if (yes) record::add(self.ledger->operations_wanted, 1);
  return yes;
}

bool is_round_wanted(uint64_t round) {
  const Settings& wanted = settings();
  if (!wanted.tensors) return false;
  const bool yes = wants_round(wanted, round);
  Process& self = process();
  record::add(self.ledger->rounds_asked, 1);
  if (yes) record::add(self.ledger->rounds_wanted, 1);
  record::raise_to(self.ledger->highest_round, round);
  return yes;
}

bool is_overflow_checked() {
  if (!settings().check_overflow) return false;
  process();  // its ledger shows that somebody asked, where nothing overflows
  return true;
}

void save_tensor(const TensorTexts& texts, const void* data, uint64_t bytes,
                 std::string_view path) {
  const Settings& wanted = settings();
  if (!wanted.tensors) return;
  const Entry entry;
  if (!entry) return;
  Process& self = process();
  if (!wants_device(wanted, path) || !wants_part(wanted, path))
    return record::add(self.ledger->skipped, 1);
  ByteBuffer header;
  record::add_atb_bin_header({texts.format, texts.type, texts.dims}, bytes, wanted.data, header);
  const uint64_t file_bytes = header.size() + (wanted.data ? bytes : 0);
  record::add(self.ledger->announced_bytes, file_bytes);
  record::add(self.ledger->announced, 1);
  if (wanted.dry_run) return;

  Path file;
  WriteStatus status = make_path(record::kTensorsFolder, path, file);
  if (!is_text_of_integers(texts.format, false) || !is_text_of_integers(texts.type, false) ||
      !is_text_of_integers(texts.dims, true) || (data == nullptr && bytes > 0 && wanted.data))
    status = kBadTensor;
  if (header.out_of_memory()) status = {ENOMEM, "set memory aside"};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in the place of a pointer, never followed.
  void* context = reinterpret_cast<void*>(static_cast<uintptr_t>(file_bytes));
  if (!status.ok()) return tensor_done(context, file.text, status);
  Job job;
  job.path = file.text;
  job.encoding = Encoding::kBytes;
  job.header = header.data();
  job.header_bytes = header.size();
  if (wanted.data) {
    job.image.data = data;
    job.image.bytes = bytes;
  }
  job.done = &tensor_done;
  job.context = context;
  submit(job);
}

void save_tiling(const void* data, uint64_t bytes, std::string_view path) {
  const Settings& wanted = settings();
  if (!wanted.tiling || wanted.dry_run || !wants_device(wanted, path)) return;
  const Entry entry;
  if (!entry) return;
  Path file;
  const WriteStatus status = make_path(record::kTilingFolder, path, file);
  save_record(data == nullptr && bytes > 0 ? kBadTensor : status, file, {}, data, bytes);
}

void save_parameter(std::string_view text, std::string_view path) {
  const Settings& wanted = settings();
  if (!wanted.tensors || wanted.dry_run || !wants_device(wanted, path)) return;
  const Entry entry;
  if (!entry) return;
  Path file;
  const WriteStatus status = make_path(record::kTensorsFolder, path, file);
  save_record(status, file, text, "\n", 1);
}

void add_row(Table table, uint64_t round, std::string_view operation, std::string_view parameter,
             const RowTensors& inputs, const RowTensors& outputs) {
  const Settings& wanted = settings();
  const bool kernels = table == Table::kKernels;
  if (wanted.dry_run || !(kernels ? wanted.kernels : wanted.operations)) return;
  const Entry entry;
  if (!entry) return;
  Process& self = process();
  if (wanted.output == nullptr) return count_line(self, kNoOutput, "");
  Path stem;
  std::snprintf(stem.text, sizeof stem.text, "%s/%s/%s/%s/%s", wanted.output, record::kDumpFolder,
                kernels ? record::kKernelTablesFolder : record::kOperationTablesFolder,
                self.name.text, kernels ? record::kKernelTableStem : record::kOperationTableStem);
  const Lock lock(lines_mutex);
  LineFiles& files = kernels ? self.kernels : self.operations;
  WriteStatus status;
  LineFiles::File* file = files.open(stem.text, round, ".csv", kTableHeader, status);
  if (file != nullptr) {
    ByteBuffer line;
    make_row(line, self, file->lines, operation, parameter, inputs,
             outputs);  // the header is line 0
    status = files.append(*file, line);
  }
  count_line(self, status, files.path());
}

void add_statistic(uint64_t round, std::string_view operation, std::string_view text) {
  const Settings& wanted = settings();
  if (!wanted.statistics || wanted.dry_run) return;
  const Entry entry;
  if (!entry) return;
  Process& self = process();
  if (wanted.output == nullptr) return count_line(self, kNoOutput, "");
  const Lock lock(lines_mutex);
  if (self.statistics_folder[0] == '\0') choose_statistics_folder(self);
  Path stem;
  std::snprintf(stem.text, sizeof stem.text, "%s/%s/%s/%s/%s", wanted.output, record::kDumpFolder,
                record::kCpuProfilingFolder, self.statistics_folder, record::kCpuProfileStem);
  WriteStatus status;
  LineFiles::File* file = self.statistics.open(stem.text, round, ".txt", nullptr, status);
  if (file != nullptr) {
    ByteBuffer line;
    line.add_text("[");
    add_cell(line, operation);
    line.add_text("]:");
    add_cell(line, text);
    line.add_text("\n");
    status = self.statistics.append(*file, line);
  }
  count_line(self, status, self.statistics.path());
}

void save_layer_graph(std::string_view operation, std::string_view json) {
  if (!settings().layers && !settings().models) return;
  const Entry entry;
  if (entry) save_graph(record::kGraphReport, process().next_graph, operation, json);
}

bool is_model_wanted(std::string_view model) {
  if (!settings().models) return false;
  const Entry entry;
  if (!entry) return false;
  Process& self = process();
  const Lock lock(lines_mutex);
  return !is_reported(self, model);
}

void save_model_graph(std::string_view model, std::string_view json) {
  if (!settings().models) return;
  const Entry entry;
  if (!entry) return;
  Process& self = process();
  {
    const Lock lock(lines_mutex);
    if (is_reported(self, model)) return;  // by another thread, since it was asked for
    auto* name = static_cast<ModelName*>(std::malloc(sizeof(ModelName) + model.size()));
    if (name != nullptr) {
      char* text = reinterpret_cast<char*>(name + 1);
      std::memcpy(text, model.data(), model.size());
      *name = {self.models, model.size(), text};
      self.models = name;
    }
  }
  save_graph(record::kModelReport, self.next_model, model, json);
}

void report_overflow(std::string_view kernel) {
  const Settings& wanted = settings();
  if (!wanted.check_overflow || wanted.output == nullptr || kernel.empty()) return;
  const Entry entry;
  if (!entry) return;
  Process& self = process();
  record::add(self.ledger->overflows, 1);
  Path path;
  std::snprintf(path.text, sizeof path.text, "%s/ait_overflow_res_%llu.txt", wanted.output,
                static_cast<unsigned long long>(::getpid()));
  ByteBuffer line;
  line.add_text("Overflow detected! Operator name: ");
  add_cell(line, kernel);
  line.add_text("\n");
  const Lock lock(lines_mutex);
  const int fd = record::open_for_lines(path.text);
  WriteStatus status = record::open_failure();
  if (fd >= 0) {
    status = record::append_line(fd, line.data(), line.size());
    ::close(fd);
  }
  count_line(self, status, path.text);
}

}  // namespace ait::probe
