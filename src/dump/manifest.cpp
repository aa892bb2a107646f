#include "dump/manifest.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstdio>

#include "base/text_file.h"
#include "dump/texts.h"
#include "record/atomic_file.h"
#include "record/dump_names.h"
#include "report/json.h"

namespace ait::dump {
namespace {

using record::Ledger;
using report::Cell;
using report::Json;
using report::JsonArray;
using report::JsonObject;

// Ours are a few kilobytes; more than this is somebody else's file.
constexpr size_t kMaxManifestBytes = size_t{16} << 20;
constexpr int kNameAttempts = 1000;

JsonArray texts(const std::vector<std::string>& list) {
  JsonArray out;
  for (const std::string& text : list) out.emplace_back(text);
  return out;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(Cell()) : Json(text); }

JsonObject options_object(const Options& o) {
  JsonObject out;
  return out.set("probe", std::string(name_of(o.probe)))
      .set("type", texts(o.types))
      .set("only_save_desc", o.only_description)
      .set("save_operation_ids", text_or_null(o.ids))
      .set("execute_range", rounds_text(o.rounds))
      .set("save_operation_child", o.children)
      .set("save_time", int64_t{o.time})
      .set("operation_name", text_or_null(o.operation_name))
      .set("save_tiling", o.tiling)
      .set("save_tensor_part", int64_t{o.part})
      .set("device_id", o.device ? Json(int64_t{*o.device}) : Json(Cell()))
      .set("seed", o.seed ? Json(uint64_t{*o.seed}) : Json(Cell()))
      .set("when", text_or_null(o.when))
      .set("keep", o.when.empty() ? Json(Cell()) : Json(int64_t{o.keep}))
      .set("sketch", o.sketch)
      .set("dry_run", o.dry_run);
}

JsonObject versions_object() {
  utsname names{};
  ::uname(&names);
  JsonObject out;
  return out.set("system", fmt::format("{} {} {}", names.sysname, names.release, names.machine))
      .set("glibc", std::string(::gnu_get_libc_version()))
      .set("probe", std::string(AIT_VERSION));
}

JsonObject tensors_object(const Ledger& counts, uint64_t lost) {
  JsonObject out;
  return out.set("announced", counts.announced)
      .set("announced_bytes", counts.announced_bytes)
      .set("written", counts.written)
      .set("written_bytes", counts.written_bytes)
      .set("failed", counts.failed)
      .set("lost", lost)
      .set("removed", counts.removed)
      .set("skipped", counts.skipped);
}

JsonObject failure_object(const Ledger& counts, const std::string& dump) {
  std::string path = counts.failure_path;
  if (path.starts_with(dump + "/")) path = path.substr(dump.size() + 1);
  JsonObject out;
  return out.set("step", std::string(counts.failure_step))
      .set("reason", system_message(static_cast<int>(counts.failure_number)))
      .set("path", path);
}

JsonObject counts_object(const Ledger& counts, uint64_t lost, uint64_t lost_records,
                         const std::string& dump) {
  JsonObject files;
  files.set("announced", counts.records_announced)
      .set("written", counts.records_written)
      .set("failed", counts.records_failed)
      .set("lost", lost_records);
  JsonObject lines;
  lines.set("written", counts.lines_written).set("failed", counts.lines_failed);
  JsonObject out;
  return out.set("tensors", tensors_object(counts, lost))
      .set("files", files)
      .set("lines", lines)
      .set("first_failure",
           counts.failure_number == 0 ? Json(Cell()) : Json(failure_object(counts, dump)));
}

Json number_or_null(const record::Place::Number& number) {
  return number.is_known == 0 ? Json(Cell()) : Json(number.number);
}

// Who it is among those of a parallel job.
void add_place(JsonObject& object, const record::Place& place) {
  object.set("host", text_or_null(place.host))
      .set("rank", number_or_null(place.rank))
      .set("local_rank", number_or_null(place.local_rank))
      .set("world_size", number_or_null(place.world_size));
}

JsonArray processes_array(const Outcome& outcome) {
  JsonArray out;
  for (const RecordedProcess& process : outcome.end.run.processes) {
    JsonObject object;
    object.set("pid", process.pid)
        .set("name", process.name)
        .set("ended_in_order", process.ended)
        .set("still_running", process.still_running);
    add_place(object, process.counts.place);
    if (outcome.options.dry_run) {  // nothing was to be stored
      out.emplace_back(std::move(object));
      continue;
    }
    const JsonObject counts =
        counts_object(process.counts, process.lost(), process.lost_records(), outcome.dump);
    for (const auto& [name, value] : counts.members()) object.set(name, value);
    out.emplace_back(std::move(object));
  }
  return out;
}

JsonObject files_object(const Outcome& outcome) {
  const Files& files = outcome.files;
  JsonObject out;
  return out.set("layer", texts(files.layers))
      .set("model", texts(files.models))
      .set("onnx", texts(files.onnx))
      .set("operation_io_tensors", texts(files.operation_tables))
      .set("kernel_io_tensors", texts(files.kernel_tables))
      .set("cpu_profiling", texts(files.cpu_profiling))
      .set("torch_tensors", texts(outcome.torch.folders));
}

JsonObject forecast_object(const Forecast& f) {
  JsonObject out;
  return out.set("round_tensors", f.round_tensors)
      .set("round_bytes", f.round_bytes)
      .set("rounds_requested", f.rounds_requested)
      .set("rounds_reached", f.rounds_reached)
      .set("tensors", f.tensors)
      .set("bytes", f.bytes)
      .set("seconds", f.seconds)
      .set("free_bytes", f.free_bytes)
      .set("fits", f.fits);
}

// When the run that wrote this manifest began, for its new name; by its date if it does not say.
std::string start_of(const std::string& path, const struct stat& status) {
  std::string name = stamp_text(status.st_mtime);
  const auto text = read_text(path, kMaxManifestBytes);
  simdjson::dom::parser parser;
  std::string_view start;
  if (!text || parser.parse(*text)["start"].get(start) != simdjson::SUCCESS) return name;
  std::string stamp;  // 20250102_030405 of 2025-01-02T03:04:05+08:00
  for (const char c : start.substr(0, 19)) {
    if (c >= '0' && c <= '9') stamp += c;
    if (c == 'T') stamp += '_';
  }
  return stamp.size() == name.size() ? stamp : name;
}

Result<void> set_aside(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  const std::string stem = path.substr(0, path.rfind(".json")) + "_" + start_of(path, status);
  for (int i = 0; i < kNameAttempts; ++i) {
    const std::string other = stem + (i == 0 ? "" : "_" + std::to_string(i)) + ".json";
    if (struct stat taken{}; ::stat(other.c_str(), &taken) == 0) continue;
    if (::rename(path.c_str(), other.c_str()) == 0) return {};
    break;
  }
  return fail(Error(ErrorCode::kUnwritable, path)
              << "the manifest of an earlier run cannot be renamed: " << system_message(errno));
}

}  // namespace

std::string manifest_text(const Outcome& outcome) {
  const RecordingEnd& end = outcome.end;
  const Ledger counts = end.run.totals();
  uint64_t lost = 0;
  uint64_t lost_records = 0;
  for (const RecordedProcess& process : end.run.processes) {
    lost += process.lost();
    lost_records += process.lost_records();
  }
  JsonObject root;
  root.set("tool", std::string("ait llm dump"))
      .set("version", std::string(AIT_VERSION))
      .set("complete", outcome.complete())
      .set("incomplete_because", texts(outcome.problems))
      .set("notes", texts(outcome.notes))
      .set("command", texts(outcome.options.command))
      .set("options", options_object(outcome.options))
      .set("versions", versions_object())
      .set("start", iso_text(end.start))
      .set("end", iso_text(end.end))
      .set("seconds", end.seconds)
      .set("exit_status", int64_t{end.child.status()})
      .set("signal", end.child.signal == 0 ? Json(Cell()) : Json(int64_t{end.child.signal}));
  add_place(root, record::read_place());
  if (outcome.forecast) root.set("forecast", forecast_object(*outcome.forecast));
  if (!outcome.options.dry_run) {
    const JsonObject totals = counts_object(counts, lost, lost_records, outcome.dump);
    for (const auto& [name, value] : totals.members()) root.set(name, value);
    root.set("written_files", files_object(outcome));
  }
  root.set("processes", processes_array(outcome));
  return Json(std::move(root)).text() + "\n";
}

Result<void> write_manifest(const Outcome& outcome) {
  const std::string path = outcome.dump + "/" + record::kManifestFile;
  if (auto ok = set_aside(path); !ok) return ok;
  std::string text = manifest_text(outcome);
  const iovec part{text.data(), text.size()};
  const auto status = record::write_file(path.c_str(), &part, 1);
  if (status.ok()) return {};
  return fail(unwritable(path, status.step, status.error_number) << "; the dump has no manifest");
}

}  // namespace ait::dump
