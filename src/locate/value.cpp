#include "locate/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "compare/non_finite.h"

namespace ait::locate {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// With memory for all of it from the beginning: there are millions of rows.
std::string joined(std::initializer_list<std::string_view> parts) {
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  std::string out;
  out.reserve(bytes + 8);
  for (const std::string_view part : parts) out += part;
  return out;
}

// Of an acceleration library only the number of the layer itself differs between layers:
// "3_Layer/1_Linear" is "#_Layer/1_Linear".
std::string without_first_number(const std::string& name) {
  const size_t end = name.find('_');
  return end != std::string::npos && is_digits(std::string_view(name).substr(0, end))
             ? joined({"#", std::string_view(name).substr(end)})
             : name;
}

// Of modules the parts of a name that are numbers: layers, experts, members of a sequence.
std::string without_numbers(const std::string& name) {
  std::string out;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    out += (out.empty() ? "" : ".") + (is_digits(part) ? "#" : part);
    at = end + 1;
  }
  return out;
}

uint64_t hash_of(const std::string& text) { return std::hash<std::string>()(text) | 1; }

// The error of fewer elements than this is that of single elements, which stray without bounds.
constexpr size_t kFewestTogether = 8;

// Half of the smallest step of a type: what rounding leaves of numbers near the end of its range,
// however small they are. 0 where that end is out of reach.
double smallest_rounding(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kComplex32:
      return 0x1p-25;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
      return 0x1p-10;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 0x1p-17;
    default:
      return 0;
  }
}

// Of integers that stand for real numbers: half a step, relative to their root mean square. 0 for
// all else.
double quantised_unit(const compare::Side& side) {
  if (!side.dtype || !side.statistics || side.statistics->l2_norm == 0) return 0;
  if (*side.dtype != DType::kInt8 && *side.dtype != DType::kUInt8) return 0;
  const double count = static_cast<double>(side.statistics->elements);
  return 0.5 / (side.statistics->l2_norm / std::sqrt(count));
}

void take_shape(const compare::Row& row, Value& value) {
  // As the profile has them, whose rows are golden's: mine may lie otherwise.
  const Shape& shape = row.golden.shape;
  value.columns = shape.empty() ? 1 : std::max<size_t>(static_cast<size_t>(shape.back()), 1);
  if (const auto& profile = row.comparison->profile; profile && profile->columns > 0)
    value.columns = profile->columns;
  value.rows = std::max<size_t>(row.comparison->elements / value.columns, 1);
  const metrics::Side& golden = row.comparison->golden;
  if (golden.elements > 0)
    value.size = golden.l2_norm / std::sqrt(static_cast<double>(golden.elements));
}

void take_profile(const metrics::Comparison& c, Value& value) {
  const double whole = c.profile ? c.profile->error : c.relative_euclidean_distance;
  value.errors = {whole, whole, whole};
  value.spread = whole;
  if (!c.profile) return;
  const metrics::ErrorProfile& profile = *c.profile;
  value.column_rows = profile.column_rows;
  value.usual = profile.usual_row_error;
  value.has_padding = profile.rows < value.rows;
  value.errors = {whole, value.columns < kFewestTogether ? 0 : profile.worst_row_error,
                  value.columns < kFewestTogether ? 0 : profile.worst_column_error};
  const auto all_alike = [](double worst, double usual, size_t count) {
    return std::hypot(worst / std::sqrt(static_cast<double>(count)), usual);
  };
  value.spread =
      std::max({whole, all_alike(profile.worst_row_error, profile.usual_row_error, value.rows),
                all_alike(profile.worst_column_error, profile.usual_column_error, value.columns)});
}

}  // namespace

const char* word(Measure measure) {
  switch (measure) {
    case Measure::kWhole:
      return "whole";
    case Measure::kRow:
      return "row";
    case Measure::kColumn:
      return "column";
  }
  return "";
}

std::string number_text(double value) { return fmt::format("{:.2g}", value); }

std::string times_text(double ratio) {
  return ratio < 10 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.0f}", ratio);
}

double unit_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-53;
    case DType::kFloat32:
    case DType::kComplex64:
      return 0x1p-24;
    case DType::kFloat16:
    case DType::kComplex32:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
      return 0x1p-4;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 0x1p-3;
    case DType::kComplex128:
      return 0x1p-53;
    default:
      return 0;
  }
}

void note_uses(std::vector<Value>& values) {
  using capture::OpKind;
  for (Value& value : values) {
    bool takes_choices = false;
    for (const uint32_t at : value.sources) {
      values[at].is_used = true;
      takes_choices |= values[at].is_discrete;
    }
    // What goes by choices are experts, which have no cache.
    value.reads_cache = value.kind == OpKind::kAttention || value.kind == OpKind::kCache ||
                        (value.kind == OpKind::kUnknown && !value.is_leaf && !takes_choices);
  }
}

void pass_errors_on(std::vector<Value>& values) {
  for (Value& value : values) {
    if (value.is_compared || value.is_broken) continue;
    for (const uint32_t at : value.sources) {
      const Value& source = values[at];
      value.spread = std::max(value.spread, source.spread);
      for (size_t k = 0; k < kMeasures; ++k)
        value.errors[k] = std::max(value.errors[k], source.errors[k]);
    }
  }
}

std::string role_text(const match::Subject& subject) {
  if (!subject.layer) return {};
  const std::string name = subject.name.find('/') != std::string::npos
                               ? without_first_number(subject.name)
                               : without_numbers(without_first_number(subject.name));
  return joined({name, "/", subject.tensor, "@", subject.rank});
}

Value value_of(const compare::Row& row, size_t place) {
  Value value;
  const match::Subject& subject = row.subject;
  const std::string column = ":" + std::to_string(subject.first_column.value_or(0));
  value.id = hash_of(
      joined({subject.name, "/", subject.tensor, "/", subject.member, "@", subject.rank, column}));
  if (std::string role = role_text(subject); !role.empty()) value.role = hash_of(role += column);
  // What comes from nothing that was recorded may come from anywhere, but for words and positions.
  value.has_origin = row.origin.is_known && (!row.origin.sources.empty() ||
                                             row.origin.kind == capture::OpKind::kEmbedding);
  value.is_copy = row.origin.is_copy && row.origin.sources.size() == 1;
  value.kind = row.origin.kind;
  value.is_leaf = row.origin.operation == subject.name;
  for (const uint32_t back : row.origin.sources)
    if (back > 0 && back <= place) value.sources.push_back(static_cast<uint32_t>(place - back));
  for (const compare::Side* side : {&row.golden, &row.actual})
    if (side->dtype) value.unit = std::max(value.unit, unit_of(*side->dtype));
  if (row.golden.is_missing()) value.unit = std::max(value.unit, quantised_unit(row.actual));
  value.is_broken = compare::non_finite_differ(row);
  const metrics::Comparison* c = compare::metrics_of(row);
  if (c != nullptr) {
    value.is_compared = true;
    value.is_identical = c->identical;
    value.is_discrete = value.unit == 0;
    take_shape(row, value);
    if (value.size > 0)
      for (const compare::Side* side : {&row.golden, &row.actual})
        value.unit = std::max(value.unit, smallest_rounding(*side->dtype) / value.size);
    value.share_differing =
        std::min(1.0, static_cast<double>(c->differing) / static_cast<double>(value.rows));
    if (!c->identical) take_profile(*c, value);
  } else if (row.comparison && row.comparison->identical) {
    value.is_compared = value.is_identical = true;
  } else if (row.distance_at_least) {
    value.is_compared = value.is_bound = true;
    value.errors = {*row.distance_at_least, 0, 0};
    value.spread = *row.distance_at_least;
  }
  return value;
}

}  // namespace ait::locate
