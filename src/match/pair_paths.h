// From two paths to pairs: finds out what lies there and pairs it the way that fits.
//
//   auto list = pair_paths({.golden = golden, .actual = actual});
//   if (!list) return fail(list.error());     // kUsage, kNotFound: what is wrong with the paths
//   for (size_t i = 0; i < list->pairs.count; ++i) {
//     const Pair pair = list->pairs.at(i);
//     lines.push_back(pair.subject.name + (pair.complete() ? "" : ": " + pair.alone));
//   }
//
// tests/match/example_test.cpp runs this example.
//
// What is at a path is for capture/layout.h to say; how runs of a kind are paired is the table of
// this page's .cpp. A new way to pair is one file pair in this library and one line there.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "capture/layout.h"
#include "match/automatic.h"
#include "match/pair.h"

namespace ait::match {

struct Inputs {
  std::string golden;
  std::string actual = {};  // may be empty where golden is a mapping that names my files, too
  // A tensor of that file was picked by name, or the file is bare bytes: it is one tensor, whatever
  // else the file holds.
  bool golden_is_tensor = false;
  bool actual_is_tensor = false;
  std::string mapping_file = {};            // types that correspond, for dumps: op_mapping.h
  std::string token_map = {};               // "0:1,1:1": golden tokens and my folders, for dumps
  CompareLevel level = CompareLevel::kAll;  // which operations of dumps are compared
  bool dequantise = false;                  // my checkpoint is quantised, golden's is not
  std::string why = {};                     // an operation of dumps: what was weighed for it
};

struct PairList {
  // Nothing: the paths are two files of one tensor each, a single pair.
  std::optional<capture::RunKind> kind;
  Pairs pairs;
  std::string what;  // "two folders, by file name"
  std::vector<Error> problems;
  // What was found out of dumps: coverage, tokens. `pairs` of it are empty.
  std::optional<AutomaticPairs> automatic;
  // And whether they hold all that was to be recorded.
  capture::Completeness golden_completeness;
  capture::Completeness actual_completeness;
};

// Fails where a path does not exist or an option makes no sense, where the two cannot be compared,
// and where there is nothing to compare.
Result<PairList> pair_paths(const Inputs& inputs,
                            std::span<const capture::Layout> layouts = capture::layouts());

}  // namespace ait::match
