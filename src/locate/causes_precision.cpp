// Narrow types: values that were cast, clamped, flushed to 0 or overflowed, and sums that lose more
// than they should.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "golden/rounder.h"
#include "locate/cause_families.h"
#include "metrics/compare.h"
#include "metrics/elements.h"

namespace ait::locate {
namespace {

constexpr auto kNarrowTypes = std::to_array<DType>(
    {DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3FN, DType::kFloat8E5M2});

double largest_of(DType type) {
  switch (type) {
    case DType::kFloat16:
      return 65504;
    case DType::kFloat8E4M3FN:
      return 448;
    case DType::kFloat8E5M2:
      return 57344;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

// A cause whose text is a sentence of its own.
void add_sentence(Candidates& out, Proof proof, const char* name, std::string text,
                  const Fit& fit) {
  Candidate candidate;
  candidate.proof = proof;
  candidate.cause = {name, std::move(text), fit.error, fit.residual};
  out.push_back(std::move(candidate));
}

// What a rounding makes of golden's value, where the two runs were a little apart before it: next to
// a tie it may go either way, as my value tells.
template <typename Round>
double rounded_like(double golden, double mine, double apart, Round round) {
  const double low = round(golden - apart);
  const double high = round(golden + apart);
  return std::abs(mine - low) < std::abs(mine - high) ? low : high;
}

// How far apart two sound values are, in absolute terms.
double usually_apart(const Evidence& evidence) {
  constexpr double kSeveral = 2;
  double square = 0;
  for (const double value : evidence.golden().values) square += value * value;
  const auto count = static_cast<double>(std::max<size_t>(evidence.golden().values.size(), 1));
  return kSeveral * evidence.noise() * std::sqrt(square / count);
}

void overflow_causes(const Evidence& evidence, Candidates& out) {
  const CauseCase& fault = evidence.fault();
  const metrics::Statistics mine = metrics::statistics(fault.actual.view());
  if (mine.non_finite() == 0) return;
  constexpr size_t kBlock = 4096;
  constexpr size_t kEnough = 4096;
  std::vector<double> golden;
  std::vector<double> actual;
  size_t places = 0;
  size_t infinite = 0;
  size_t first = 0;
  double largest = 0;
  for (size_t at = 0; at < fault.golden.elements() && places < kEnough; at += kBlock) {
    const size_t count = std::min(kBlock, fault.golden.elements() - at);
    metrics::read_elements(fault.golden.view(), at, count, golden);
    metrics::read_elements(fault.actual.view(), at, count, actual);
    for (size_t k = 0; k < count; ++k) {
      if (std::isfinite(actual[k]) || !std::isfinite(golden[k])) continue;
      if (places == 0) first = (at + k) / evidence.columns();
      ++places;
      infinite += std::isinf(actual[k]) ? 1 : 0;
      largest = std::max(largest, std::abs(golden[k]));
    }
  }
  if (places == 0) return;
  std::string text = fmt::format("my is {} at {}{} places, first in row {}, ",
                                 infinite > 0 ? "infinite or NaN" : "NaN",
                                 places >= kEnough ? "more than " : "", places, first);
  const auto beyond =
      std::ranges::find_if(kNarrowTypes, [&](DType type) { return largest > largest_of(type); });
  if (largest > largest_of(DType::kFloat16))
    text += fmt::format("where golden is up to {}, beyond the {} of {}", short_number(largest),
                        largest_of(DType::kFloat16), name(DType::kFloat16));
  else if (infinite > 0 && beyond != kNarrowTypes.end())
    text += fmt::format("where golden is up to {}, beyond the {} of {}", short_number(largest),
                        largest_of(*beyond), name(*beyond));
  else
    text += fmt::format(
        "where golden is at most {}: something on the way to it overflowed or was "
        "divided by 0",
        short_number(largest));
  add_sentence(out, Proof::kModel, "overflow", std::move(text),
               {std::numeric_limits<double>::infinity(), evidence.error()});
}

void saturation_causes(const Evidence& evidence, Candidates& out) {
  const auto [least, most] = std::ranges::minmax(evidence.actual().values);
  const double noise = std::max(evidence.noise(), 1e-6);
  size_t at_limit = 0;
  for (size_t i = 0; i < evidence.sample().size(); ++i)
    for (const size_t c : evidence.hit_columns()) {
      const double g = evidence.golden()[i][c];
      const double m = evidence.actual()[i][c];
      const bool is_above = g > most * (1 + 4 * noise) && most > 0 && m >= most * (1 - noise);
      const bool is_below = g < least * (1 + 4 * noise) && least < 0 && m <= least * (1 - noise);
      at_limit += is_above || is_below ? 1 : 0;
    }
  const double limit = std::max(std::abs(least), std::abs(most));
  const auto known = std::ranges::find_if(
      kNarrowTypes, [&](DType type) { return std::abs(limit / largest_of(type) - 1) <= 1e-3; });
  // Two that happen to be the same are no accident.
  if (at_limit == 0 || (at_limit == 1 && known == kNarrowTypes.end())) return;
  const Fit fit = evidence.fit(
      [&](size_t i, size_t c) { return std::clamp(evidence.golden()[i][c], least, most); });
  if (!evidence.explains(fit)) return;
  evidence.add(
      out, Proof::kRelation, "saturation",
      fmt::format("clamping it to {}{}", short_number(limit),
                  known == kNarrowTypes.end() ? "" : fmt::format(", the largest {}", name(*known))),
      fit);
}

void flush_causes(const Evidence& evidence, Candidates& out) {
  constexpr size_t kFewest = 3;
  size_t flushed = 0;
  double largest_flushed = 0;
  double smallest_kept = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < evidence.sample().size(); ++i)
    for (const size_t c : evidence.hit_columns()) {
      const double g = std::abs(evidence.golden()[i][c]);
      const double m = std::abs(evidence.actual()[i][c]);
      if (m == 0 && g > 0) {
        ++flushed;
        largest_flushed = std::max(largest_flushed, g);
      } else if (m > 0) {
        smallest_kept = std::min(smallest_kept, m);
      }
    }
  if (flushed < kFewest || !std::isfinite(smallest_kept) || largest_flushed > 2 * smallest_kept)
    return;
  const Fit fit = evidence.fit([&](size_t i, size_t c) {
    const double g = evidence.golden()[i][c];
    // Next to the limit either may have happened.
    if (std::abs(g) >= smallest_kept && std::abs(g) <= largest_flushed)
      return std::numeric_limits<double>::quiet_NaN();
    return std::abs(g) <= largest_flushed ? 0 : g;
  });
  if (!evidence.explains(fit)) return;
  evidence.add(out, Proof::kRelation, "flush-to-zero",
               fmt::format("setting to 0 what is below {}", short_number(largest_flushed)), fit);
}

// All of my values are numbers of a narrower type than the one that was recorded.
void representable_causes(const Evidence& evidence, Candidates& out) {
  constexpr double kNearlyAll = 0.999;
  constexpr double kFew = 0.5;
  constexpr size_t kFewest = 64;
  constexpr double kRoundings = 8;  // that the error may be
  for (const DType type : kNarrowTypes) {
    if (rounding_unit(type) <= rounding_unit(evidence.fault().actual.dtype())) continue;
    const golden::Rounder rounder(type);
    const auto share = [&](const Rows& of) {
      size_t exact = 0;
      size_t all = 0;
      for (const double value : of.values) {
        if (value == 0) continue;
        ++all;
        exact += rounder.round(value) == value ? 1 : 0;
      }
      return all < kFewest ? 0 : static_cast<double>(exact) / static_cast<double>(all);
    };
    if (evidence.error() > kRoundings * rounding_unit(type) ||
        share(evidence.actual()) < kNearlyAll || share(evidence.golden()) > kFew)
      continue;
    const Fit fit =
        evidence.fit([&](size_t i, size_t c) { return rounder.round(evidence.golden()[i][c]); });
    add_sentence(
        out, Proof::kFitted, "precision",
        fmt::format("all values of my are {} numbers, though it is recorded as {} (error {})",
                    name(type), name(evidence.fault().actual.dtype()), short_number(fit.error)),
        {fit.error, std::min(fit.error, fit.residual)});
    return;
  }
}

// Whole numbers up to `levels`, times a scale for all, each row, each column or each group.
void quantised_causes(const Evidence& evidence, Candidates& out) {
  const size_t columns = evidence.columns();
  struct Grain {
    const char* what;
    size_t group;  // columns; 0: one scale for a column over all rows
  };
  std::vector<Grain> grains = {{"each row", columns}, {"each column", 0}};
  for (const size_t group : {32, 64, 128})
    if (group < columns && columns % group == 0) grains.push_back({"each group of columns", group});
  const metrics::Statistics all = metrics::statistics(evidence.fault().golden.view());
  const double largest = std::max(std::abs(all.minimum), std::abs(all.maximum));
  const double apart = usually_apart(evidence);
  for (const double levels : {127.0, 7.0}) {
    const char* type = levels > 100 ? "int8" : "int4";
    const auto offer = [&](const std::string& what, auto scale_at) {
      const Fit fit = evidence.fit([&](size_t i, size_t c) {
        const double scale = scale_at(i, c) / levels;
        if (!(scale > 0)) return 0.0;
        return rounded_like(evidence.golden()[i][c], evidence.actual()[i][c], apart,
                            [&](double value) { return std::nearbyint(value / scale) * scale; });
      });
      if (evidence.explains(fit))
        evidence.add(out, Proof::kRelation, "precision",
                     fmt::format("rounding it to {} with one scale for {}", type, what), fit);
    };
    if (std::isfinite(largest)) offer("all", [&](size_t, size_t) { return largest; });
    for (const Grain& grain : grains) {
      if (grain.group == 0 && evidence.sample().size() != evidence.row_count()) continue;
      const size_t groups = grain.group == 0 ? columns : columns / grain.group;
      std::vector<double> scales(grain.group == 0 ? columns : evidence.sample().size() * groups);
      const auto place = [&](size_t i, size_t c) {
        return grain.group == 0 ? c : i * groups + c / grain.group;
      };
      for (size_t i = 0; i < evidence.sample().size(); ++i)
        for (size_t c = 0; c < columns; ++c) {
          double& scale = scales[place(i, c)];
          scale = std::max(scale, std::abs(evidence.golden()[i][c]));
        }
      if (grain.group == 0 && evidence.sample().size() < 2) continue;
      offer(grain.what, [&](size_t i, size_t c) { return scales[place(i, c)]; });
    }
  }
}

void cast_causes(const Evidence& evidence, Candidates& out) {
  for (const DType type : kNarrowTypes) {
    if (rounding_unit(type) <= rounding_unit(evidence.fault().actual.dtype())) continue;
    const golden::Rounder rounder(type);
    const double apart = usually_apart(evidence);
    const Fit fit = evidence.fit([&](size_t i, size_t c) {
      return rounded_like(evidence.golden()[i][c], evidence.actual()[i][c], apart,
                          [&](double value) { return rounder.round(value); });
    });
    if (evidence.explains(fit))
      evidence.add(out, Proof::kRelation, "precision", fmt::format("rounding it to {}", name(type)),
                   fit);
  }
}

// Whether the error is like that of roundings: as large in all rows, as often up as down, the same
// neither in all rows nor in proportion to golden.
bool looks_like_rounding(const Evidence& evidence) {
  constexpr double kLargest = 0.1;
  constexpr double kAboveNoise = 2;
  constexpr size_t kFewest = 48;
  constexpr double kCorrelated = 0.1;
  constexpr double kWorstRow = 3;
  constexpr double kHeavyTail = 10;  // 3 is that of a normal distribution, 5.4 of single roundings
  const size_t rows = evidence.sample().size();
  const size_t columns = evidence.columns();
  if (evidence.region().confined() || rows * columns < kFewest) return false;
  if (evidence.error() > kLargest || evidence.error() < kAboveNoise * evidence.noise())
    return false;
  std::vector<double> row_errors;
  std::vector<double> means(columns);
  double product = 0;
  double square = 0;
  double norm = 0;
  double fourth = 0;
  for (size_t i = 0; i < rows; ++i) {
    double row_square = 0;
    double row_norm = 0;
    double row_fourth = 0;
    for (size_t c = 0; c < columns; ++c) {
      const double g = evidence.golden()[i][c];
      const double d = evidence.actual()[i][c] - g;
      product += g * d;
      row_norm += g * g;
      row_square += d * d;
      row_fourth += d * d * d * d;
      means[c] += d / static_cast<double>(rows);
    }
    square += row_square;
    norm += row_norm;
    if (row_square > 0)
      fourth += row_fourth * static_cast<double>(columns) / (row_square * row_square) /
                static_cast<double>(rows);
    row_errors.push_back(row_norm > 0 ? std::sqrt(row_square / row_norm) : 0);
  }
  if (!(square > 0) || !(norm > 0)) return false;
  const double chance = 4 / std::sqrt(static_cast<double>(rows * columns));
  if (std::abs(product) > std::max(kCorrelated, chance) * std::sqrt(square * norm)) return false;
  if (fourth > kHeavyTail) return false;
  double same = 0;
  for (const double mean : means) same += mean * mean * static_cast<double>(rows);
  if (rows >= 4 && same / square > 3 / static_cast<double>(rows)) return false;
  std::ranges::sort(row_errors);
  return row_errors.back() <= kWorstRow * row_errors[rows / 2];
}

void rounding_causes(const Evidence& evidence, Candidates& out) {
  if (!looks_like_rounding(evidence)) return;
  struct Usual {
    const char* type;
    double error;  // of values rounded to it, which are spread over some powers of two
  };
  constexpr double kOfUnit = 0.41;
  constexpr auto kUsual = std::to_array<Usual>({{"float16", kOfUnit * 0x1p-11},
                                                {"bfloat16", kOfUnit * 0x1p-8},
                                                {"int8", 0.01},
                                                {"float8_e4m3fn", kOfUnit * 0x1p-4},
                                                {"float8_e5m2", kOfUnit * 0x1p-3}});
  const double error = evidence.error();
  const Usual& nearest = *std::ranges::min_element(
      kUsual, {}, [&](const Usual& usual) { return std::abs(std::log(error / usual.error)); });
  const std::string like = fmt::format(
      "the error of {} is spread over all elements like that of rounding", short_number(error));
  const auto precision = [&] {
    add_sentence(out, Proof::kGuess, "precision",
                 fmt::format("{}, about as if something was rounded to {}", like, nearest.type),
                 {error, error});
  };
  constexpr double kOfOneRounding = 3;
  const double unit = rounding_unit(evidence.fault().actual.dtype());
  const bool is_cast =
      error >= nearest.error / kOfOneRounding && error <= kOfOneRounding * nearest.error;
  // More than a rounding of my own type, but not by much: a long sum in it.
  constexpr double kLongSum = 40;
  const bool is_narrow = unit >= 0x1p-11 && error <= kLongSum * unit;
  if (is_cast && !is_narrow) precision();
  using capture::OpKind;
  const OpKind kind = evidence.fault().kind;
  if (kind == OpKind::kLinear || kind == OpKind::kAttention || kind == OpKind::kNorm ||
      kind == OpKind::kUnknown)
    add_sentence(out, Proof::kGuess, "accumulation",
                 like + ", as of a sum that is kept in a narrow type", {error, error});
  if (is_cast && is_narrow) precision();
}

}  // namespace

void precision_causes(const Evidence& evidence, Candidates& out) {
  if (info(evidence.fault().actual.dtype()).kind != DTypeKind::kFloat) return;
  overflow_causes(evidence, out);
  saturation_causes(evidence, out);
  flush_causes(evidence, out);
  cast_causes(evidence, out);
  quantised_causes(evidence, out);
  representable_causes(evidence, out);
  rounding_causes(evidence, out);
}

}  // namespace ait::locate
