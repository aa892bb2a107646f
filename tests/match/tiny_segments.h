// Two segments of a handful of operations, and evidence about them as a table of distances.
//
//   TinySegments both("q  Linear\nk  Linear", "0_LinearOperation\n1_LinearOperation");
//   both.match({distances({{0.01, 1.4},        // a row for each golden value,
//                          {1.4, 0.02}})});    // a column for each of mine
//
// No files are read. Values of one side are different from one another unless a test says otherwise.
#pragma once

#include <string>
#include <vector>

#include "match/segment_match.h"
#include "tiny_recording.h"

namespace ait::match {

inline constexpr double kOtherSize = -1;  // cannot be compared as wholes

inline Form form_at(double distance) {
  Form form;
  form.distance = {distance, 1000};
  return form;
}

inline Evidence distances(const std::vector<std::vector<double>>& table) {
  Evidence out(table.size(), table[0].size());
  for (size_t i = 0; i < out.golden.size(); ++i) out.golden[i].content = i + 1;
  for (size_t i = 0; i < out.actual.size(); ++i) out.actual[i].content = i + 1;
  size_t pair = 0;
  for (const auto& row : table)
    for (const double distance : row) {
      if (distance != kOtherSize) out.pairs[pair].whole = form_at(distance);
      ++pair;
    }
  return out;
}

inline void make_golden_kin(Evidence& evidence, size_t a, size_t b) {
  evidence.golden_kin.cells[a * evidence.golden.size() + b] = 1;
}

inline void make_actual_kin(Evidence& evidence, size_t a, size_t b) {
  evidence.actual_kin.cells[a * evidence.actual.size() + b] = 1;
}

// Columns [first, first + 16) of my value hold the golden one.
inline void add_part(Evidence& evidence, size_t golden, size_t actual, int64_t first,
                     double distance = 0.01) {
  Form form = form_at(distance);
  form.actual.columns = 64;
  form.actual.first = first;
  form.actual.taken = 16;
  evidence.pairs[golden * evidence.actual.size() + actual].part = form;
}

struct TinySegments {
  TinyRun golden_run;
  TinyRun actual_run;
  Segment golden_segment;
  Segment actual_segment;
  std::vector<Value> golden_values;
  std::vector<Value> actual_values;
  SegmentSide golden;
  SegmentSide actual;

  TinySegments(const std::string& golden_list, const std::string& actual_list,
               const capture::Traits& golden_traits = capture::kTorchTraits,
               const capture::Traits& actual_traits = capture::kAtbTraits)
      : golden_run(golden_traits, golden_list),
        actual_run(actual_traits, actual_list),
        golden_segment(golden_run.whole()),
        actual_segment(actual_run.whole()),
        golden_values(values_of(golden_run.recording, golden_segment)),
        actual_values(values_of(actual_run.recording, actual_segment)),
        golden{golden_run.recording, golden_segment, golden_values},
        actual{actual_run.recording, actual_segment, actual_values} {}

  // The operation's name, with "<" where it is what goes into it.
  static std::string name(const SegmentSide& side, uint32_t value) {
    return (side.values[value].is_output() ? "" : "<") + side.operation_of(side.values[value]).name;
  }

  SegmentMatch found(const std::vector<Evidence>& evidence,
                     const std::vector<TypeMapping>& mappings = {},
                     const SettledValues& settled = {}) const {
    return match_segment(golden, actual, evidence, mappings, settled);
  }

  // "golden=mine", with "?" where that is only likely, and "golden+golden=mine".
  std::vector<std::string> match(const std::vector<Evidence>& evidence,
                                 const std::vector<TypeMapping>& mappings = {},
                                 const SettledValues& settled = {}) const {
    std::vector<std::string> out;
    for (const Match& each : found(evidence, mappings, settled).matches)
      out.push_back(name(golden, each.golden) +
                    (each.golden_too ? "+" + name(golden, *each.golden_too) : "") + "=" +
                    name(actual, each.actual) + (each.certainty == Certainty::kLikely ? "?" : ""));
    return out;
  }
};

}  // namespace ait::match
