#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/log.h"
#include "base/node_paths.h"
#include "capture/node_map.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/compare_many.h"
#include "cli/compare_parts.h"
#include "cli/nearest.h"
#include "cli/process_io.h"
#include "cli/report_name.h"
#include "compare/measure.h"
#include "launch/python.h"
#include "match/pair_paths.h"
#include "report/json.h"
#include "report/utf8.h"
#include "summary/one_pair.h"
#include "summary/why.h"
#include "tables/comparison.h"
#include "tables/row_report.h"
#include "tables/statistics.h"

namespace ait::cli {
namespace {

using compare::Row;
using report::Cell;
using report::ColumnGroup;

std::string ending(const CompareOptions& options, const std::string& report_path) {
  std::string out;
  if (!report_path.empty()) out += "Report: " + report::visible(report_path) + "\n";
  out += options.output_folder.empty()
             ? "Next: add -o DIR to keep a csv report, or look at one side with: "
             : "Next: look at one side with: ";
  return out + "ait show " + report::visible(options.actual.path) + "\n";
}

std::string document(const summary::PairResult& result, const CompareOptions& options,
                     const std::string& report_path, const std::vector<std::string>& hits) {
  report::JsonArray met;
  for (const std::string& hit : hits) met.emplace_back(hit);
  report::JsonObject root;
  root.set("rows", report::JsonArray{report::column_json(report_columns(options), result.row)})
      .set("non_finite", summary::broken_json(result))
      .set("report", report_path.empty() ? Cell() : Cell(report_path))
      .set("fail_on_met", std::move(met));
  return report::Json(std::move(root)).text() + "\n";
}

// Begins the report before the work, so that an unwritable folder is known before hours are spent.
Result<std::optional<tables::RowReport>> begin_report(const CompareOptions& options) {
  std::optional<tables::RowReport> report;
  if (options.output_folder.empty()) return report;
  auto created = tables::RowReport::create(options.output_folder, report_name(options.statistics),
                                           report_columns(options));
  if (!created) return fail(created.error());
  report.emplace(std::move(*created));
  return report;
}

Result<std::string> finish_report(std::optional<tables::RowReport>& report, const Row& row) {
  if (!report) return std::string();
  if (auto ok = report->append(row); !ok) return fail(ok.error());
  return report->finish();
}

// Of a path that a person gave: nothing is known of where it comes from.
std::vector<capture::TensorRecord> record_of(const std::string& path) {
  capture::TensorRecord record;
  record.path = path;
  record.rank.clear();
  return {record};
}

// The tensor, or what its file keeps in its place.
Result<compare::Content> load_content(const TensorSource& source, std::string_view name_option) {
  auto tensor = load(source, name_option);
  if (tensor) return compare::Content(std::move(*tensor));
  if (const auto file = formats::open_tensor_file(source.path, source.raw))
    for (size_t i = 0; i < (*file)->size(); ++i) {
      if (source.name.empty() ? (*file)->size() > 1 : (*file)->name(i) != source.name) continue;
      const auto description = (*file)->describe(i);
      if (description && !description->has_data) return compare::Content(*description);
    }
  return fail(tensor.error());
}

int run_compare_one(const CompareOptions& options) {
  const auto golden = load_content(options.golden, "--golden-name");
  if (!golden) return report_error(golden.error());
  const auto actual = load_content(options.actual, "--my-name");
  if (!actual) return report_error(actual.error());
  auto writer = begin_report(options);
  if (!writer) return report_error(writer.error());

  summary::PairResult result = summary::measure_pair(*golden, *actual, measure_options(options));
  Row& row = result.row;
  row.golden.records = record_of(options.golden.path);
  row.actual.records = record_of(options.actual.path);
  log_debug(summary::old_result_line(row));

  std::vector<std::string> hits;
  for (const tables::Condition& condition : options.fail_on)
    if (tables::hits(condition, row)) hits.push_back(condition.text);

  const auto report_path = finish_report(*writer, row);
  const std::string path = report_path.value_or("");
  int status = hits.empty() ? kDone : kFailOnHit;
  status = print(options.json ? document(result, options, path, hits)
                              : summary::pair_text(result, *golden, *actual, options.extended,
                                                   stdout_is_colourful()) +
                                    ending(options, path),
                 status);
  if (!report_path) return report_error(report_path.error());
  for (const std::string& hit : hits) log_warning("--fail-on " + printable(hit) + " is met");
  return status;
}

}  // namespace

tables::ComparisonColumns report_columns(const CompareOptions& options) {
  return options.statistics ? tables::statistics_columns()
                            : tables::comparison_columns(options.extended);
}

compare::Options measure_options(const CompareOptions& options) {
  const bool asks_for_rows =
      std::any_of(options.fail_on.begin(), options.fail_on.end(), [](const auto& condition) {
        return condition.metric != nullptr && condition.metric->group == ColumnGroup::kPerRow;
      });
  compare::Options out;
  out.compat = options.compat;
  out.rows = options.extended || asks_for_rows;
  out.profile = true;
  out.threads = options.threads;
  return out;
}

namespace {

// One that was given and means nothing to a single pair.
std::string_view option_of_dumps(const CompareOptions& options) {
  if (!options.mapping_file.empty()) return "--op-mapping-file";
  if (!options.token_map.empty()) return "--token-map";
  if (!options.why.empty()) return "--why";
  if (!options.noise.empty()) return "--noise";
  if (options.explain) return "--explain";
  return options.level == match::CompareLevel::kAll ? "" : "--cmp-level";
}

// Says why an operation is compared with what it is compared with; nothing is compared or written.
int run_why(const CompareOptions& options, const match::PairList& list) {
  for (const Error& problem : list.problems) log_warning(problem.text());
  const auto why = summary::find_why(list, options.why);
  if (!why) {
    const std::string meant = nearest(options.why, summary::operations_of(list));
    return report_error(Error(ErrorCode::kUsage)
                        << "--why: neither run has an operation " << printable(options.why)
                        << (meant.empty() ? "; take one of data_id or golden_data_path"
                                          : "; did you mean " + printable(meant) + "?"));
  }
  return print(options.json ? report::Json(summary::why_json(list, *why)).text() + "\n"
                            : summary::why_text(list, *why, stdout_is_colourful()),
               kDone);
}

// Runs that are spread over nodes, as folders to list here.
struct NodeViews {
  std::vector<capture::NodeView> views;

  // Puts the folder of a view in the place of a map.
  Result<void> resolve(CompareOptions& options) {
    const char* listings = std::getenv("AIT_NODE_LISTINGS");
    std::vector<std::pair<capture::NodeMap, std::string*>> maps;
    for (std::string* path : {&options.golden.path, &options.actual.path}) {
      if (!capture::is_node_map(*path)) continue;
      auto map = capture::read_node_map(*path);
      if (!map) return fail(map.error());
      for (const capture::NodeFolder& each : *map)
        if (std::find(options.nodes.begin(), options.nodes.end(), each.node) == options.nodes.end())
          options.nodes.push_back(each.node);
      maps.emplace_back(std::move(*map), path);
    }
    if (maps.empty()) return {};
    if (!options.noise.empty())
      return fail(Error(ErrorCode::kUsage)
                  << "--noise does not go together with a map of nodes; leave it out, and give ait "
                     "locate --noise the report of the healthy run");
    use_node_paths(options.nodes);
    for (auto& [map, path] : maps) {
      std::string listed = listings == nullptr ? "" : listings;
      if (!listed.empty()) listed += path == &options.golden.path ? "/golden" : "/my";
      auto view = capture::NodeView::create(map, listed);
      if (!view) return fail(view.error());
      log_problems(view->problems());
      *path = view->path();
      views.push_back(std::move(*view));
    }
    return {};
  }

  // Of a file that was listed in one of them, "node:/path"; any other as it is.
  std::string node_path(const std::string& listed) const {
    for (const capture::NodeView& view : views)
      if (std::string path = view.node_path(listed); path != listed) return path;
    return listed;
  }
};

// Pairs with the paths that files have on their nodes.
match::Pairs on_nodes(match::Pairs pairs, const compare::PathOf& path_of) {
  pairs.at = [at = std::move(pairs.at), path_of](size_t index) {
    match::Pair pair = at(index);
    for (match::Side* side : {&pair.golden, &pair.actual})
      for (capture::TensorRecord& record : side->records) record.path = path_of(record.path);
    return pair;
  };
  return pairs;
}

int run_compare(const CompareOptions& given) {
  if (!given.from_plan.empty()) return run_part(given);
  if (!given.merge.empty()) return run_merge(given);
  CompareOptions options = given;
  NodeViews views;
  if (auto resolved = views.resolve(options); !resolved) return report_error(resolved.error());
  // A tensor that was picked by name, or bare bytes, are one tensor.
  const auto is_tensor = [](const TensorSource& source) {
    return !source.name.empty() || source.raw.has_value();
  };
  auto list = match::pair_paths({.golden = options.golden.path,
                                 .actual = options.actual.path,
                                 .golden_is_tensor = is_tensor(options.golden),
                                 .actual_is_tensor = is_tensor(options.actual),
                                 .mapping_file = options.mapping_file,
                                 .token_map = options.token_map,
                                 .level = options.level,
                                 .dequantise = options.dequantise,
                                 .why = options.why});
  if (!list) return report_error(list.error());
  const auto path_of = [&](const std::string& listed) { return views.node_path(listed); };
  for (Error& problem : list->problems) problem.set_path(path_of(problem.path()));
  if (!list->kind && !options.html.empty())
    return report_error(Error(ErrorCode::kUsage)
                        << "--html has no effect on two files of one tensor each; it is for many "
                           "pairs");
  if (!list->kind && options.dequantise)
    return report_error(Error(ErrorCode::kUsage)
                        << "--weight has no effect on two files of one tensor each; it is for two "
                           "checkpoints");
  if (const std::string_view option = option_of_dumps(options); !list->kind && !option.empty())
    return report_error(Error(ErrorCode::kUsage)
                        << option
                        << " has no effect on two files of one tensor each; it is for two dumps, "
                           "of torch or of the acceleration library");
  if (!options.why.empty()) return run_why(options, *list);
  if (!list->kind && !options.plan.empty())
    return report_error(Error(ErrorCode::kUsage)
                        << "--plan has no effect on two files of one tensor each; they are one "
                           "pair, so compare them without it");
  if (!list->kind) return run_compare_one(options);
  if (!options.plan.empty()) return run_plan(options, *list, path_of);
  if (!options.nodes.empty()) list->pairs = on_nodes(std::move(list->pairs), path_of);
  if (options.noise.empty()) return run_compare_many(options, *list, {});
  if (!list->automatic)
    return report_error(Error(ErrorCode::kUsage)
                        << "--noise is for two dumps, whose operations are in order; leave it out");
  const auto noise = measure_noise(options);
  if (!noise) return report_error(noise.error());
  return run_compare_many(options, *list, {.noise = &*noise});
}

constexpr const char* kCompareExitStatus =
    "  0  done, whatever was found\n"
    "  1  a condition of --fail-on was met\n"
    "  2  wrong usage, unreadable input, nothing to compare, or a report that cannot be written\n"
    "     with --merge also: parts are missing; the report of the others is …_partial.csv\n"
    "  130  stopped by Ctrl-C; of many pairs, those done are in a report named …_partial.csv\n";

// Options as words, before they are understood.
struct RawWords {
  std::string dtype;
  std::string shape;
};

class CompareCommand : public CommandOf<CompareOptions> {
 public:
  void add_options(OptionSet& set) override {
    CompareOptions& o = options_;
    set.group("Input");
    set.add_option("--golden-path", o.golden.path, "PATH",
                   "the trusted side: a tensor file of any format, a folder of such\n"
                   "files, a checkpoint, a dump of torch or of the acceleration\n"
                   "library, or a folder that holds golden_tensor; or a json file that\n"
                   "names the folders of such a run by node: {\"node\": [\"/folder\"]}");
    set.add_option("--my-path", o.actual.path, "PATH",
                   "the side to check, of the same kind; with golden_tensor needed only\n"
                   "if the files have been moved: the folder that they are in now");
    set.add_option("--golden-name", o.golden.name, "NAME",
                   "which tensor of the golden file, if it holds several");
    set.add_option("--my-name", o.actual.name, "NAME",
                   "which tensor of my file, if it holds several");
    set.add_option("--op-mapping-file", o.mapping_file, "PATH",
                   "for dumps, types of operations that correspond: a json file, or the\n"
                   "folder that holds op_mapping_file.json");
    set.add_option("--token-map", o.token_map, "MAP",
                   "for dumps, each golden token and the folder of my side that belongs\n"
                   "to it, as 0:1,1:1,2:2; found out if not given");
    set.add_option("--cmp-level", level_, "LEVEL",
                   "for dumps, compare only a part: layer, module, api (operations that\n"
                   "contain no others) or logits (what is computed last)");
    set.add_option("--why", o.why, "OPERATION",
                   "compare nothing; say of one operation of either dump what it is\n"
                   "paired with, why, and what else was considered");
    set.add_option("--noise", o.noise, "DIR",
                   "for dumps, a third run that is known to be healthy, as golden in my\n"
                   "precision; its differences from golden are taken for noise");
    set.add_flag("-w,--weight", o.dequantise,
                 "for two checkpoints of which mine is quantised: compare weights as\n"
                 "(weight - weight_offset) * weight_scale");
    set.add_option("--custom-algorithms", algorithms_, "FILE:FUNCTION",
                   "not taken here: the Python package gives rows and tensors to\n"
                   "functions of your own");
    set.group("Bare bytes");
    set.add_option("--golden-dtype", golden_.dtype, "TYPE",
                   "the golden file is bare bytes of this type");
    set.add_option("--golden-shape", golden_.shape, "SHAPE", "the shape of these bytes, as 2,3");
    set.add_option("--my-dtype", actual_.dtype, "TYPE", "my file is bare bytes of this type");
    set.add_option("--my-shape", actual_.shape, "SHAPE", "the shape of these bytes, as 2,3");
    set.group("Parts, on many machines");
    set.add_option("--plan", o.plan, "FILE",
                   "compare nothing; write down who is to be compared with whom");
    set.add_option("--from-plan", o.from_plan, "FILE",
                   "compare a part of what that file says; with --part and -o");
    set.add_option("--part", part_, "K/N", "which part of how many, from 1/N to N/N");
    set.add_option("--cut", o.cut, "FILE",
                   "with --from-plan and --part, compare nothing; write a plan of that\n"
                   "part alone, for a machine that the whole is too large for");
    set.add_flag("--files", o.lists_files,
                 "with --from-plan and --part, compare nothing; print the files of that\n"
                 "part, one on a line");
    set.add_option("--merge", o.merge, "DIR", "make the report of all parts in that folder");
    set.add_choice("--on", on_, {"ray"}, "ENGINE",
                   "compare on all nodes of a Ray cluster: the one of --address or\n"
                   "$RAY_ADDRESS, else one of this machine that is started for it");
    set.add_option("--address", address_, "ADDRESS", "of the Ray cluster, as ray start says it");
    set.group("Output");
    set.add_option("-o,--output", o.output_folder, "DIR",
                   "folder for the csv report, or for a part; if not given, a single pair\n"
                   "gets no report, and many pairs get one in the current folder");
    set.add_option("--html", o.html, "FILE",
                   "for many pairs, also make a page to look at in a browser");
    add_json(set, o.json);
    set.add_flag("--extended", o.extended, "more columns, after cmp_fail_reason");
    set.add_flag("--explain", o.explain, "say of each finding where its threshold comes from");
    set.add_flag("--stats", o.statistics,
                 "report only how far apart maximum, minimum, mean and norm are");
    set.add_option("--fail-on", fail_on_, "LIST",
                   "end with status 1 if one of these holds: metric<number,\n"
                   "metric>number, failed, nan, unmatched");
    set.add_choice("--metric-compat", compat_, {"msit", "ait"}, "TOOL",
                   "use the definitions of an older tool: msit or ait");
    add_threads(set, o.threads);
  }

  Result<void> understand() override {
    if (auto fits = understand_parts(); !fits) return fits;
    auto golden = parse_raw_layout(golden_.dtype, golden_.shape, "--golden-dtype");
    if (!golden) return fail(golden.error());
    auto actual = parse_raw_layout(actual_.dtype, actual_.shape, "--my-dtype");
    if (!actual) return fail(actual.error());
    options_.golden.raw = std::move(*golden);
    options_.actual.raw = std::move(*actual);
    if (!algorithms_.empty())
      return fail(Error(ErrorCode::kUsage)
                  << "--custom-algorithms runs no functions of yours; write the loop in Python: "
                     "ait_llm.compare_runs gives the rows and ait_llm.load the tensors");
    auto level = match::parse_compare_level(level_);
    if (!level) return fail(level.error());
    options_.level = *level;
    if (!options_.why.empty() && (!options_.output_folder.empty() || !fail_on_.empty()))
      return fail(Error(ErrorCode::kUsage)
                  << "--why compares nothing and writes no report; leave out "
                  << (fail_on_.empty() ? "--output" : "--fail-on"));
    if (options_.statistics && options_.extended)
      return fail(Error(ErrorCode::kUsage)
                  << "--extended has no effect on a report on statistics; leave out one of --stats "
                     "and --extended");
    if (compat_ == "msit") options_.compat = compare::MetricCompat::kMsit;
    if (compat_ == "ait") options_.compat = compare::MetricCompat::kAit;
    if (fail_on_.empty()) return {};
    auto conditions = tables::parse_fail_on(fail_on_);
    if (!conditions) return fail(conditions.error());
    options_.fail_on = std::move(*conditions);
    options_.fail_on_text = fail_on_;
    return {};
  }

  int run() override { return on_.empty() ? run_compare(options_) : run_on_ray(); }

 private:
  // The Python package makes the plan, places its parts and merges them, each by this program.
  int run_on_ray() {
    const CompareOptions& o = options_;
    std::error_code error;
    std::vector<std::string> words = {
        "--program", std::filesystem::read_symlink("/proc/self/exe", error).native()};
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {option, value});
    };
    const auto flag = [&](const char* option, bool is_set) {
      if (is_set) words.emplace_back(option);
    };
    add("--address", address_);
    add("--output", o.output_folder);
    add("--html", o.html);
    add("--threads", o.threads == 0 ? "" : std::to_string(o.threads));
    flag("--json", o.json);
    flag("--explain", o.explain);
    words.emplace_back("--");
    add("--golden-path", o.golden.path);
    add("--my-path", o.actual.path);
    add("--golden-name", o.golden.name);
    add("--my-name", o.actual.name);
    add("--golden-dtype", golden_.dtype);
    add("--golden-shape", golden_.shape);
    add("--my-dtype", actual_.dtype);
    add("--my-shape", actual_.shape);
    add("--op-mapping-file", o.mapping_file);
    add("--token-map", o.token_map);
    add("--cmp-level", level_);
    add("--fail-on", fail_on_);
    add("--metric-compat", compat_);
    flag("--weight", o.dequantise);
    flag("--extended", o.extended);
    flag("--stats", o.statistics);
    const GracefulStop stop;
    const auto end = launch::run_python_module("ait_llm.cluster", words);
    return end ? end->status() : report_error(end.error());
  }

  // Which of the ways to compare in parts was asked for, and whether the other options go with it.
  Result<void> understand_parts() {
    CompareOptions& o = options_;
    const auto wrong = [](const auto&... words) {
      Error error(ErrorCode::kUsage);
      static_cast<void>((error << ... << words));
      return fail(error);
    };
    const bool reads_plan = !o.from_plan.empty() || !o.merge.empty();
    if (!address_.empty() && on_.empty())
      return wrong("--address has no effect without --on ray; add that");
    if (!on_.empty())
      for (const auto& [given, option] :
           {std::pair(!o.plan.empty(), "--plan"), std::pair(!o.from_plan.empty(), "--from-plan"),
            std::pair(!o.merge.empty(), "--merge"), std::pair(!o.why.empty(), "--why"),
            std::pair(!o.noise.empty(), "--noise")})
        if (given)
          return wrong(option, " does not go together with --on ray; leave it out",
                       option == std::string_view("--noise")
                           ? ", and give ait locate --noise the report of the healthy run"
                           : "");
    if (!o.from_plan.empty() && !o.merge.empty())
      return wrong("--merge joins parts that --from-plan compared; leave out one of the two");
    if (!reads_plan) {
      if (o.golden.path.empty())
        return wrong("--golden-path is required; see `ait llm compare --help`");
      if (!part_.empty() || !o.cut.empty() || o.lists_files)
        return wrong(!part_.empty()  ? "--part"
                     : o.lists_files ? "--files"
                                     : "--cut",
                     " has no effect without --from-plan");
      if (o.plan.empty()) return {};
      for (const auto& [given, option] :
           {std::pair(!o.noise.empty(), "--noise"), std::pair(!o.why.empty(), "--why"),
            std::pair(!o.html.empty(), "--html"), std::pair(o.explain, "--explain"),
            std::pair(!o.output_folder.empty(), "--output")})
        if (given)
          return wrong(option, " has no effect on --plan, which compares nothing; leave it out",
                       option == std::string_view("--noise")
                           ? ", and give ait locate --noise the report of the healthy run"
                           : "");
      return {};
    }
    for (const auto& [given, option] :
         {std::pair(!o.golden.path.empty(), "--golden-path"),
          std::pair(!o.actual.path.empty(), "--my-path"), std::pair(!o.plan.empty(), "--plan"),
          std::pair(!o.mapping_file.empty(), "--op-mapping-file"),
          std::pair(!o.token_map.empty(), "--token-map"), std::pair(!level_.empty(), "--cmp-level"),
          std::pair(!o.why.empty(), "--why"), std::pair(!o.noise.empty(), "--noise"),
          std::pair(o.dequantise, "--weight"), std::pair(o.extended, "--extended"),
          std::pair(o.statistics, "--stats"), std::pair(!fail_on_.empty(), "--fail-on"),
          std::pair(!compat_.empty(), "--metric-compat")})
      if (given) return wrong(option, " is said where the plan is made; leave it out here");
    if (!o.merge.empty())
      return part_.empty() && o.cut.empty() && !o.lists_files
                 ? Result<void>()
                 : wrong("--merge takes all parts; leave out --part, --cut and --files");
    for (const auto& [given, option] :
         {std::pair(!o.html.empty(), "--html"), std::pair(o.explain, "--explain")})
      if (given) return wrong(option, " has no effect on a part; give it with --merge");
    const int asked =
        (o.cut.empty() ? 0 : 1) + (o.output_folder.empty() ? 0 : 1) + (o.lists_files ? 1 : 0);
    if (asked != 1)
      return wrong("--from-plan needs -o DIR, the folder that all parts share",
                   asked == 0 ? "" : ", or --cut FILE or --files, and not two of them");
    auto part = parse_part(part_);
    if (!part) return fail(part.error());
    o.part = *part;
    return {};
  }

  RawWords golden_, actual_;
  std::string part_;
  std::string on_;
  std::string address_;
  std::string fail_on_;
  std::string compat_;
  std::string level_;
  std::string algorithms_;
};

}  // namespace

CommandEntry compare_command() {
  return {
      "llm compare",
      "Compare tensors of a trusted run with yours",
      {"-gp PATH -mp PATH [options]",
       {"llm compare -gp golden.npy -mp actual.npy",
        "llm compare -gp layer.pth -mp layer.bin -o out",
        "llm compare -gp golden_folder -mp my_folder -o out",
        "llm compare -gp torch_run/ait_dump -mp my_run/ait_dump -o out --html report.html",
        "llm compare -gp torch_run/ait_dump -mp my_run/ait_dump --why 2_Layer/0_LinearOperation",
        "llm compare -gp golden.npy -mp actual.npy --fail-on 'cosine_similarity<0.999,nan'",
        "llm compare -gp torch_run/ait_dump -mp my_run/ait_dump --plan run.plan",
        "llm compare --from-plan run.plan --part 3/16 -o parts", "llm compare --merge parts -o out",
        "llm compare -gp torch_run/ait_dump -mp my_run/ait_dump -o out --on ray"},
       kCompareExitStatus},
      &make_command<CompareCommand>};
}

}  // namespace ait::cli
