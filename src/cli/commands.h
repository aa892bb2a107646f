// The commands: what each was asked to do, and the function that does it.
#pragma once

#include <string>
#include <vector>

#include "cli/dump_options.h"
#include "cli/tensor_source.h"
#include "compare/measure.h"
#include "tables/fail_on.h"

namespace ait::cli {

struct CompareOptions {
  TensorSource golden;
  TensorSource actual;
  std::string output_folder;  // empty: no report of a single pair, the current folder for many
  std::string mapping_file;   // types that correspond, for dumps
  std::string token_map;      // "0:1,1:1": golden tokens and my folders, for dumps
  bool json = false;
  bool extended = false;
  std::vector<tables::Condition> fail_on;
  compare::MetricCompat compat = compare::MetricCompat::kOwn;
  size_t threads = 0;
};

struct AclcmpOptions {
  std::vector<std::string> command;  // to run and to collect labels of
  std::string labels;                // or a folder of labels that are there already
  bool json = false;
  bool extended = false;
  size_t threads = 0;
};

struct ShowOptions {
  TensorSource source;
  bool json = false;
  size_t values = 8;
  size_t threads = 0;
};

struct DemoOptions {
  std::string output = "ait_demo";
};

struct DoctorOptions {
  bool json = false;
};

// What the measuring needs to know of them.
compare::Options measure_options(const CompareOptions& options);

// Each prints its results and returns the exit status.
int run_compare(const CompareOptions& options);
int run_aclcmp(const AclcmpOptions& options);
int run_dump(const DumpOptions& options);
int run_errcheck(const ErrcheckOptions& options);
int run_show(const ShowOptions& options);
int run_demo(const DemoOptions& options);
int run_doctor(const DoctorOptions& options);

}  // namespace ait::cli
