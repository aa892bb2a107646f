#include "cli/compare_parts.h"

#include <fmt/format.h>

#include <charconv>

#include "base/log.h"
#include "base/node_paths.h"
#include "cli/compare_many.h"
#include "cli/process_io.h"
#include "cli/progress.h"
#include "compare/part.h"
#include "report/json.h"
#include "report/utf8.h"

namespace ait::cli {
namespace {

constexpr size_t kNamedParts = 8;

// The other way round is measure_options().
CompareOptions with_settings(CompareOptions options, const compare::PlanSettings& settings) {
  options.compat = settings.compat;
  options.extended = settings.extended;
  options.statistics = settings.statistics;
  options.fail_on_text = settings.fail_on;
  return options;
}

compare::Options part_options(const CompareOptions& options,
                              const compare::PlanSettings& settings) {
  compare::Options out = measure_options(with_settings(options, settings));
  out.rows = settings.rows;
  return out;
}

int stopped_or(const Error& error) {
  const int status = report_error(error);
  return error.code() == ErrorCode::kInterrupted ? kInterruptedStatus : status;
}

std::string gigabytes(uint64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

// "3, 5 and 7", and no more than a line of them.
std::string numbers_text(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size() && i < kNamedParts; ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return numbers.size() > kNamedParts
             ? out + fmt::format(" and {} more", numbers.size() - kNamedParts)
             : out;
}

int run_cut(const CompareOptions& options, const compare::Plan& plan) {
  const auto part = plan.part(options.part);
  if (!part) return report_error(part.error());
  const auto path = plan.cut(options.part, options.cut);
  if (!path) return report_error(path.error());
  if (!options.json)
    return print(fmt::format("Plan of part {} of {}: {} ({} pairs, {})\n", options.part.part,
                             options.part.parts, report::visible(*path), part->pairs.count,
                             gigabytes(part->bytes)));
  report::JsonObject nodes;
  for (size_t i = 0; i < plan.facts().nodes.size(); ++i)
    if (part->bytes_of_node[i] > 0) nodes.set(plan.facts().nodes[i], part->bytes_of_node[i]);
  report::JsonObject document;
  document.set("plan", *path)
      .set("pairs", uint64_t{part->pairs.count})
      .set("bytes", part->bytes)
      .set("nodes", std::move(nodes));
  return print(report::Json(std::move(document)).text() + "\n");
}

// The files of a part, one on a line.
int list_files(const CompareOptions& options, const compare::Plan& plan) {
  const auto part = plan.part(options.part);
  if (!part) return report_error(part.error());
  std::string out;
  for (size_t i = 0; i < part->pairs.count; ++i) {
    const match::Pair pair = part->pairs.at(i);
    if (pair.unread) continue;
    for (const match::Side* side : {&pair.golden, &pair.actual})
      for (const capture::TensorRecord& record : side->records)
        if (record.path.find('\n') == std::string::npos) out += record.path + "\n";
    constexpr size_t kPieceBytes = size_t{1} << 20;
    if (out.size() < kPieceBytes) continue;
    if (auto written = write_stdout(out); !written) return report_error(written.error());
    out.clear();
  }
  return print(out);
}

}  // namespace

Result<compare::PartNumber> parse_part(std::string_view text) {
  compare::PartNumber out;
  const char* end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, out.part);
  const bool has_slash = read.ec == std::errc() && read.ptr != end && *read.ptr == '/';
  if (has_slash) read = std::from_chars(read.ptr + 1, end, out.parts);
  if (!has_slash || read.ec != std::errc() || read.ptr != end || out.part < 1 ||
      out.part > out.parts || out.parts > compare::kMaxParts)
    return fail(Error(ErrorCode::kUsage)
                << "--part takes which part of how many, from 1/16 to 16/16, not '"
                << printable(text) << "'");
  return out;
}

int run_plan(const CompareOptions& options, const match::PairList& list,
             const compare::PathOf& path_of) {
  log_problems(list.problems);
  log_info("planning " + printable(list.what));
  const compare::Options measured = measure_options(options);
  const compare::PlanSettings settings{measured.compat,    measured.rows,        options.extended,
                                       options.statistics, options.fail_on_text, AIT_VERSION};
  const GracefulStop stop;
  const auto path =
      compare::write_plan(options.plan, list, settings, stop.requested(), options.nodes, path_of);
  if (!path) return stopped_or(path.error());
  const auto plan = compare::Plan::open(*path);
  if (!plan) return report_error(plan.error());
  const compare::PlanIdentity& identity = plan->facts().identity;
  if (options.json) {
    report::JsonObject document;
    document.set("plan", *path).set("pairs", identity.pairs).set("bytes", identity.bytes);
    return print(report::Json(std::move(document)).text() + "\n");
  }
  return print(
      fmt::format("Plan: {} ({} pairs, {})\nNext: compare each of N parts with: ait llm "
                  "compare --from-plan {} --part 1/N -o DIR\n",
                  report::visible(*path), identity.pairs, gigabytes(identity.bytes),
                  report::shell_word(*path)));
}

int run_part(const CompareOptions& options) {
  const auto plan = compare::Plan::open(options.from_plan);
  if (!plan) return report_error(plan.error());
  use_node_paths(plan->facts().nodes);
  if (options.lists_files) return list_files(options, *plan);
  if (!options.cut.empty()) return run_cut(options, *plan);
  // Rows of two versions in one report might mean two things.
  if (const std::string& version = plan->facts().settings.version; version != AIT_VERSION)
    return report_error(Error(ErrorCode::kUsage, options.from_plan)
                        << "was made by ait " << printable(version)
                        << ", and this is ait " AIT_VERSION
                           "; use one version for the plan and all its parts");
  const auto part = plan->part(options.part);
  if (!part) return report_error(part.error());
  const GracefulStop stop;
  Result<compare::PartDone> done;
  {
    Progress progress(part->pairs.count);
    size_t rows = 0;
    done = compare::compare_part(*plan, options.part, options.output_folder,
                                 part_options(options, plan->facts().settings), stop.requested(),
                                 [&](uint64_t bytes) { progress.advance(++rows, bytes); });
  }
  if (!done) return stopped_or(done.error());
  if (options.json) {
    report::JsonObject document;
    document.set("part", uint64_t{options.part.part})
        .set("parts", uint64_t{options.part.parts})
        .set("pairs", done->pairs)
        .set("rows", done->rows)
        .set("bytes", done->bytes)
        .set("store", done->path);
    return print(report::Json(std::move(document)).text() + "\n");
  }
  return print(
      fmt::format("Part {} of {}: {} pairs, {} compared\nStore: {}\nNext: when all parts "
                  "are there, make the report with: ait llm compare --merge {} -o OUT\n",
                  options.part.part, options.part.parts, done->pairs, gigabytes(done->bytes),
                  report::visible(done->path), report::shell_word(options.output_folder)));
}

int run_merge(const CompareOptions& options) {
  const auto parts = compare::Parts::open(options.merge);
  if (!parts) return report_error(parts.error());
  const compare::PlanFacts& facts = parts->plan().facts();
  use_node_paths(facts.nodes);
  CompareOptions all = with_settings(options, facts.settings);
  if (!all.fail_on_text.empty()) {
    auto conditions = tables::parse_fail_on(all.fail_on_text);
    if (!conditions) return report_error(conditions.error());
    all.fail_on = std::move(*conditions);
  }
  match::PairList list = facts.list;
  list.pairs = parts->plan().pairs();
  const std::vector<uint32_t> missing = parts->missing();
  const int status =
      run_compare_many(all, list,
                       {.each = [&](const std::atomic<bool>& stop,
                                    const EmitRow& emit) { return parts->each(stop, emit); },
                        .is_partial = !missing.empty()});
  if (missing.empty() || status == kInterruptedStatus) return status;
  return report_error(Error(ErrorCode::kNotFound, options.merge)
                      << "lacks " << missing.size() << " of " << parts->count()
                      << " parts, of which the partial report says so: " << numbers_text(missing)
                      << "; compare them and merge again");
}

}  // namespace ait::cli
