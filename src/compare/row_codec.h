// The fields of a row as bytes, in their order: docs/formats/rows.md.
#pragma once

#include "compare/block_codec.h"
#include "compare/row.h"

namespace ait::compare {

template <typename Codec, typename T>
bool statistics_fields(Codec& c, T& side) {
  return field(c, side.elements) && field(c, side.nan) && field(c, side.positive_inf) &&
         field(c, side.negative_inf) && field(c, side.minimum) && field(c, side.maximum) &&
         field(c, side.mean) && field(c, side.l2_norm);
}

template <typename Codec, typename T>
bool side_fields(Codec& c, T& side) {
  const auto last_dtype = static_cast<DType>(kDTypeCount - 1);
  return records_fields(c, side.records) && field(c, side.lacks_member) &&
         transform_fields(c, side.transform) && choice(c, side.kept, capture::Kept::kDescription) &&
         optional(c, side.dtype, [&](auto& dtype) { return choice(c, dtype, last_dtype); }) &&
         list(c, side.shape, kMaxRank, [&](auto& size) { return field(c, size); }) &&
         (!Codec::kReads || count_elements(side.shape)) &&
         optional(c, side.statistics, [&](auto& s) { return statistics_fields(c, s); });
}

template <typename Codec, typename T>
bool finding_fields(Codec& c, T& finding) {
  return field(c, finding.rows) && field(c, finding.worst_row) &&
         field(c, finding.worst_row_cosine) && field(c, finding.kl_mean) &&
         field(c, finding.kl_max);
}

template <typename Codec, typename T>
bool profile_fields(Codec& c, T& profile) {
  return field(c, profile.error) && field(c, profile.rows) && field(c, profile.worst_row) &&
         field(c, profile.worst_row_error) && field(c, profile.usual_row_error) &&
         field(c, profile.columns) && field(c, profile.column_rows) &&
         field(c, profile.worst_column) && field(c, profile.worst_column_error) &&
         field(c, profile.usual_column_error) && field(c, profile.saturated) &&
         field(c, profile.flushed);
}

// Statistics of the two sides are the row's own and not stored twice.
template <typename Codec, typename T>
bool comparison_fields(Codec& c, T& m) {
  return field(c, m.elements) && field(c, m.compared) && field(c, m.identical) &&
         field(c, m.withheld) && field(c, m.cosine_similarity) && field(c, m.max_relative_error) &&
         field(c, m.mean_relative_error) && field(c, m.max_absolute_error) &&
         field(c, m.mean_absolute_error) && field(c, m.kl_divergence) &&
         field(c, m.relative_euclidean_distance) && field(c, m.differing) &&
         field(c, m.zero_golden_mismatch) && field(c, m.non_finite_agree) &&
         field(c, m.worst_index) && field(c, m.worst_golden) && field(c, m.worst_actual) &&
         field(c, m.golden_zero) && field(c, m.actual_zero) &&
         optional(c, m.row, [&](auto& finding) { return finding_fields(c, finding); }) &&
         optional(c, m.profile, [&](auto& profile) { return profile_fields(c, profile); });
}

template <typename Codec, typename T>
bool estimate_fields(Codec& c, T& estimate) {
  const auto range = [&](auto& r) {
    return field(c, r.value) && field(c, r.least) && field(c, r.most);
  };
  const auto group = [&](auto& g) {
    return field(c, g.first) && field(c, g.last) && field(c, g.difference);
  };
  return range(estimate.distance) && range(estimate.cosine) && optional(c, estimate.row, group) &&
         optional(c, estimate.column, group);
}

template <typename Codec, typename T>
bool row_fields(Codec& c, T& row) {
  c.texts.start_row();
  return field(c, row.token) && choice(c, row.phase, match::Phase::kDecode) &&
         subject_fields(c, row.subject) &&
         optional(c, row.certainty,
                  [&](auto& how) { return choice(c, how, match::Certainty::kLikely); }) &&
         field(c, row.certainty_reason) && side_fields(c, row.golden) &&
         side_fields(c, row.actual) &&
         optional(c, row.comparison, [&](auto& m) { return comparison_fields(c, m); }) &&
         optional(c, row.distance_at_least, [&](auto& d) { return field(c, d); }) &&
         optional(c, row.estimate, [&](auto& e) { return estimate_fields(c, e); }) &&
         field(c, row.reason) && origin_fields(c, row.origin);
}

// What is not stored twice. False where the row is not one that was written: `number` is its place among all
// rows of a comparison.
inline bool complete_row(Row& row, size_t number) {
  if (row.comparison && row.golden.statistics) row.comparison->golden = *row.golden.statistics;
  if (row.comparison && row.actual.statistics) row.comparison->actual = *row.actual.statistics;
  return are_before(row.origin.sources, number);
}

}  // namespace ait::compare
