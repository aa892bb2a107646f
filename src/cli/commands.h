// What commands were asked to do, where more than the command itself wants to know.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/tensor_source.h"
#include "compare/measure.h"
#include "compare/plan.h"
#include "convert/watch.h"
#include "formats/write.h"
#include "match/level.h"
#include "tables/fail_on.h"

namespace ait::cli {

struct CompareOptions {
  TensorSource golden;
  TensorSource actual;
  std::string output_folder;  // empty: no report of a single pair, the current folder for many
  std::string mapping_file;   // types that correspond, for dumps
  std::string token_map;      // "0:1,1:1": golden tokens and my folders, for dumps
  match::CompareLevel level = match::CompareLevel::kAll;  // which operations of dumps
  std::string why;       // an operation of dumps: say what was weighed for it, and compare nothing
  std::string noise;     // a dump whose differences from golden are noise by definition
  bool explain = false;  // where thresholds come from
  std::string html;      // a page of the report, where it is to be written
  bool json = false;
  bool extended = false;
  bool statistics = false;  // a report on these alone
  bool dequantise = false;  // my checkpoint is quantised
  std::vector<tables::Condition> fail_on;
  std::string fail_on_text;  // as it was given
  compare::MetricCompat compat = compare::MetricCompat::kOwn;
  size_t threads = 0;

  std::vector<std::string> nodes;  // that the runs are spread over; none: paths are of this machine

  // Comparing in parts: cli/compare_parts.h.
  std::string plan;       // where to write it
  std::string from_plan;  // which to read
  compare::PartNumber part;
  std::string cut;           // where to write the plan of that part alone
  bool lists_files = false;  // compare nothing; print the files of that part
  std::string merge;         // the folder of parts to join
};

struct ShowOptions {
  TensorSource source;
  bool json = false;
  size_t values = 8;
  size_t threads = 0;
};

struct ConvertOptions {
  std::string source;
  std::string destination;                    // empty: beside the source
  std::optional<formats::FileFormat> format;  // nothing: statistics, or a dump
  bool to_dump = false;
  std::string statistics_folder;
  bool watch = false;
  bool delete_source = false;
  convert::StatisticsKind statistics_kind = convert::StatisticsKind::kExtremes;
};

struct DoctorOptions {
  bool json = false;
};

// The columns of the report that they ask for.
tables::ComparisonColumns report_columns(const CompareOptions& options);

// What the measuring needs to know of them.
compare::Options measure_options(const CompareOptions& options);

}  // namespace ait::cli
