#include "cli/pair_list.h"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "capture/atb_dump.h"
#include "capture/checkpoint.h"
#include "capture/manual_mapping.h"
#include "capture/plain_folder.h"
#include "capture/torch_dump.h"
#include "formats/registry.h"
#include "match/automatic.h"
#include "match/by_metadata.h"
#include "match/by_name.h"
#include "match/op_mapping.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;
using capture::Capture;
using capture::Recording;

constexpr const char* kManualReportName = "cmp_report.csv";

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// A tensor was picked by name, or the file has none to pick from.
bool picks_one(const TensorSource& source) {
  return !source.name.empty() || source.raw.has_value();
}

// Whether a file holds several tensors. One that cannot be opened does not: the single comparison
// says why.
bool holds_several(const TensorSource& source) {
  if (picks_one(source) || is_folder(source.path)) return false;
  const auto file = formats::open_tensor_file(source.path);
  return file && (*file)->size() > 1;
}

Result<PairList> by_metadata(const std::string& metadata, const CompareOptions& options) {
  auto mapping = capture::read_manual_mapping(metadata, options.actual.path);
  if (!mapping) return fail(mapping.error());
  return PairList{match::pair_by_metadata(*mapping),
                  "manual mapping of " + metadata,
                  kManualReportName,
                  std::move(mapping->problems),
                  {}};
}

using ReadLayout = Result<Capture> (*)(const std::string& path);
using ReadDump = Result<Recording> (*)(const std::string& path);

Result<PairList> by_name(const CompareOptions& options, ReadLayout read, std::string what) {
  auto golden = read(options.golden.path);
  if (!golden) return fail(golden.error());
  auto actual = read(options.actual.path);
  if (!actual) return fail(actual.error());
  PairList list{
      match::pair_by_name(*golden, *actual), std::move(what), timed_report_name(), {}, {}};
  for (Capture* side : {&*golden, &*actual})
    for (Error& problem : side->problems) list.problems.push_back(std::move(problem));
  return list;
}

Error mixed(const std::string& folder, const std::string& file) {
  return Error(ErrorCode::kUsage, folder)
         << "is a folder but " << printable(file)
         << " is a file of one tensor; give two files, two folders, or two checkpoints";
}

// A folder may hold both kinds; then golden is meant to be torch's and mine the library's.
ReadDump dump_reader(const std::string& path, bool is_golden) {
  const bool torch = capture::is_torch_dump(path);
  const bool atb = (!torch || !is_golden) && capture::is_atb_dump(path);
  if (atb) return capture::read_atb_dump;
  return torch ? capture::read_torch_dump : nullptr;
}

Result<PairList> by_structure(const CompareOptions& options, ReadDump golden_reader,
                              ReadDump actual_reader) {
  match::AutomaticOptions how;
  // Both were understood before.
  if (!options.mapping_file.empty())
    how.mappings = match::read_op_mapping(options.mapping_file).value_or(how.mappings);
  how.token_map = match::parse_token_map(options.token_map).value_or(how.token_map);
  auto golden = golden_reader(options.golden.path);
  if (!golden) return fail(golden.error());
  auto actual = actual_reader(options.actual.path);
  if (!actual) return fail(actual.error());
  PairList list;
  list.what = fmt::format("{} with {}", golden->traits.words, actual->traits.words);
  list.report_name = timed_report_name();
  for (Recording* side : {&*golden, &*actual})
    for (Error& problem : side->problems) list.problems.push_back(std::move(problem));
  auto found =
      match::pair_automatically(std::make_shared<const Recording>(std::move(*golden)),
                                std::make_shared<const Recording>(std::move(*actual)), how);
  if (!found) return fail(found.error());
  list.pairs = std::move(found->pairs);
  list.automatic = std::move(*found);
  return list;
}

Result<PairList> list_many(const CompareOptions& options, bool golden_several,
                           bool actual_several) {
  const bool golden_folder = is_folder(options.golden.path);
  const bool actual_folder = is_folder(options.actual.path);
  if (golden_folder && actual_folder) {
    const ReadDump golden_dump = dump_reader(options.golden.path, true);
    const ReadDump actual_dump = dump_reader(options.actual.path, false);
    if (golden_dump != nullptr && actual_dump != nullptr)
      return by_structure(options, golden_dump, actual_dump);
    if ((golden_dump != nullptr) != (actual_dump != nullptr))
      return fail(Error(ErrorCode::kUsage,
                        golden_dump != nullptr ? options.actual.path : options.golden.path)
                  << "is not a atb dump path or a torch dump path, but the other side is a dump; "
                     "give two dumps or two folders");
  }
  const bool golden_weights =
      golden_several || (golden_folder && capture::is_checkpoint_folder(options.golden.path));
  const bool actual_weights =
      actual_several || (actual_folder && capture::is_checkpoint_folder(options.actual.path));
  if (golden_weights && actual_weights)
    return by_name(options, capture::read_checkpoint, "two checkpoints, by tensor name");
  if (golden_folder && actual_folder)
    return by_name(options, capture::read_plain_folder, "two folders, by file name");
  return fail(golden_folder ? mixed(options.golden.path, options.actual.path)
                            : mixed(options.actual.path, options.golden.path));
}

}  // namespace

std::string timed_report_name() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &local);
  return fmt::format("ait_cmp_report_{}.csv", text);
}

Result<std::optional<PairList>> list_pairs(const CompareOptions& options) {
  std::error_code ignored;
  // Wrong options are wrong whatever is compared.
  if (!options.mapping_file.empty())
    if (const auto mappings = match::read_op_mapping(options.mapping_file); !mappings)
      return fail(mappings.error());
  if (const auto token_map = match::parse_token_map(options.token_map); !token_map)
    return fail(token_map.error());
  const auto wrap = [](Result<PairList> list) -> Result<std::optional<PairList>> {
    if (!list) return fail(list.error());
    if (list->pairs.count == 0 && list->problems.empty())
      return fail(Error(ErrorCode::kUsage) << "nothing to compare: " << list->what);
    return std::optional<PairList>(std::move(*list));
  };
  if (const std::string metadata = capture::find_metadata(options.golden.path); !metadata.empty())
    return wrap(by_metadata(metadata, options));
  if (options.actual.path.empty())
    return fail(Error(ErrorCode::kUsage) << "--my-path is required unless the golden path holds "
                                            "golden_tensor/metadata.json; see `ait llm compare "
                                            "--help`");
  for (const std::string& path : {options.golden.path, options.actual.path})
    if (!fs::exists(path, ignored))
      return fail(Error(ErrorCode::kNotFound, path) << "no such file or folder; check the path");
  const bool golden_several = holds_several(options.golden);
  const bool actual_several = holds_several(options.actual);
  if (is_folder(options.golden.path) || is_folder(options.actual.path) ||
      (golden_several && actual_several))
    return wrap(list_many(options, golden_several, actual_several));
  return std::optional<PairList>();
}

}  // namespace ait::cli
