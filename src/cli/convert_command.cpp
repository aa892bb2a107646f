#include <fmt/format.h>

#include <filesystem>

#include "base/log.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "convert/files.h"
#include "convert/run.h"
#include "convert/watch.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;

using formats::FileFormat;

void warn(const Error& error) { log_warning(error.text()); }

int convert_to_statistics(const ConvertOptions& options) {
  const GracefulStop stop;
  convert::StatisticsConverter converter(
      options.statistics_folder, {options.statistics_kind, options.delete_source, options.watch});
  if (auto done = converter.run(stop.requested(), warn); !done) return report_error(done.error());
  const convert::StatisticsCounts& counts = converter.counts();
  std::string text = fmt::format("{} files converted to statistics, {} originals deleted\n",
                                 counts.converted, counts.deleted);
  if (counts.left > 0)
    text += fmt::format("{} files were not converted; the reasons are above\n", counts.left);
  // To be stopped is how watching ends.
  const bool cut_short = stop.requested() && !options.watch;
  return print(text, cut_short ? kInterruptedStatus : kDone);
}

int convert_one(const ConvertOptions& options, FileFormat format) {
  const std::string to =
      options.destination.empty() ? convert::renamed(options.source, format) : options.destination;
  if (std::error_code ignored; fs::equivalent(options.source, to, ignored))
    return report_error(Error(ErrorCode::kUsage, to)
                        << "is the file that is to be converted; give another name");
  const auto written = convert::convert_file(options.source, to, format);
  if (!written) return report_error(written.error());
  std::string text;
  for (const std::string& path : *written) text += printable(path, path.size()) + "\n";
  return print(text);
}

int convert_folder(const ConvertOptions& options, FileFormat format) {
  const GracefulStop stop;
  const auto counts =
      convert::convert_tree(options.source, options.destination, format, stop.requested(), warn);
  if (!counts) return report_error(counts.error());
  std::string text = fmt::format("{} files converted to {} in {}\n", counts->files, counts->written,
                                 printable(options.destination));
  if (counts->left > 0)
    text += fmt::format("{} files could not be converted; the reasons are above\n", counts->left);
  if (counts->others > 0) text += fmt::format("{} files hold no tensors\n", counts->others);
  if (stop.requested()) return print(text, kInterruptedStatus);
  return print(text, counts->files == 0 ? kCannot : kDone);
}

int convert_to_dump(const ConvertOptions& options) {
  const GracefulStop stop;
  const auto counts =
      convert::convert_run(options.source, options.destination, stop.requested(), warn);
  if (!counts) return report_error(counts.error());
  std::string text = fmt::format("{} tensors", counts->tensors);
  if (counts->statistics > 0) text += fmt::format(" and statistics of {}", counts->statistics);
  text += fmt::format(" written to {}\n", printable(counts->folder));
  if (counts->left > 0)
    text += fmt::format("{} tensors could not be converted; the reasons are above\n", counts->left);
  if (stop.requested()) return print(text, kInterruptedStatus);
  return print(text, counts->tensors + counts->statistics == 0 ? kCannot : kDone);
}

class ConvertCommand : public CommandOf<ConvertOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.add_optional_operand("SRC", options_.source, "a tensor file, or a folder of them");
    set.add_optional_operand("DST", options_.destination,
                             "the new file, whose extension names its format, or folder");
    set.group("Formats");
    set.add_choice("--to", to_, {"bin", "dump", "npy", "npz", "pth", "safetensors"}, "FORMAT",
                   "the new format, if the extension of DST does not name it; dump: a run\n"
                   "of msprobe, SGLang, transformers or Polygraphy becomes a torch dump,\n"
                   "DST/ait_dump");
    set.group("Statistics");
    set.add_option("--to-stats", options_.statistics_folder, "DIR",
                   "write statistics of each file of a GE or FX dump beside it");
    set.add_choice("--info", info_, {"min_max", "stat"}, "KIND",
                   "min_max: minimum and maximum of each tensor, in {file}_min_max.npz\n"
                   "or {file}_min_max.npy; stat: also type, shape, mean and norm, in\n"
                   "{file}_stat.csv; min_max if not given");
    set.add_flag("--watch", options_.watch,
                 "go on while the dump is written, until SIGINT, SIGTERM or a file\n"
                 "DIR/.ait_convert_stop");
    set.add_flag("--delete-source", options_.delete_source,
                 "delete each file once its statistics are on the disk");
  }

  Result<void> understand() override {
    const auto usage = [] { return Error(ErrorCode::kUsage); };
    if (!options_.statistics_folder.empty()) {
      if (!options_.source.empty() || !to_.empty())
        return fail(usage() << "--to-stats DIR takes neither SRC nor --to");
      if (info_ == "stat") options_.statistics_kind = convert::StatisticsKind::kTable;
      return {};
    }
    if (options_.watch || options_.delete_source || !info_.empty())
      return fail(usage() << "--info, --watch and --delete-source belong to --to-stats");
    if (options_.source.empty()) return fail(usage() << "SRC is missing: what is to be converted?");
    options_.to_dump = to_ == "dump";
    if (options_.to_dump && options_.destination.empty())
      return fail(usage() << "DST is missing: --to dump needs a folder for the new dump");
    if (options_.to_dump) return {};
    options_.format = formats::file_format_of(to_.empty() ? options_.destination : "." + to_);
    if (!options_.format)
      return fail(usage() << "the new format is missing: give --to, or a DST that ends in .bin, "
                             ".npy, .npz, .pth, .pt or .safetensors");
    return {};
  }

  int run() override {
    if (!options_.statistics_folder.empty()) return convert_to_statistics(options_);
    if (options_.to_dump) return convert_to_dump(options_);
    std::error_code ignored;
    if (!fs::is_directory(options_.source, ignored)) return convert_one(options_, *options_.format);
    if (options_.destination.empty())
      return report_error(Error(ErrorCode::kUsage, options_.source)
                          << "is a folder; give another folder for the new files after it");
    return convert_folder(options_, *options_.format);
  }

 private:
  std::string to_;
  std::string info_;
};

}  // namespace

CommandEntry convert_command() {
  return {"llm convert",
          "Convert tensor files to another format, or dumps to statistics",
          {"SRC [DST] [options]",
           {"llm convert layer.bin layer.npy", "llm convert msit_ge_dump out --to pth",
            "llm convert msprobe_dump out --to dump",
            "llm convert --to-stats msit_ge_dump --watch --delete-source"}},
          &make_command<ConvertCommand>};
}

}  // namespace ait::cli
