#include "locate/unpaired.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compare/engine.h"
#include "metrics/compare.h"

namespace ait::locate {
namespace {

using match::Pair;

// Rows of the token before and after the finding that are looked through.
constexpr size_t kLookedThrough = 8192;

// What has no partner and is that many times as far off as the noise of what follows is wrong.
constexpr double kFarOff = 10;

struct Numbered {
  size_t number;
  Pair pair;
};

std::vector<Numbered> rows_of_token(const Finding& finding, const PairOf& pair_of) {
  std::vector<Numbered> out;
  const auto add = [&](size_t number) {
    auto pair = pair_of(number);
    if (!pair || pair->token != finding.row.token) return false;
    out.push_back({number, std::move(*pair)});
    return true;
  };
  for (size_t back = 0; back <= finding.number && back < kLookedThrough; ++back)
    if (!add(finding.number - back)) break;
  std::reverse(out.begin(), out.end());
  for (size_t ahead = 1; ahead < kLookedThrough; ++ahead)
    if (!add(finding.number + ahead)) break;
  return out;
}

// "1_Attention/Rope" of "1_Attention/3_Rope": where one side has an operation more, numbers differ.
std::string without_last_number(const std::string& name) {
  const size_t begin = name.rfind('/') + 1;
  const size_t end = name.find_first_not_of("0123456789", begin);
  return end == std::string::npos ? name : name.substr(0, begin) + name.substr(end);
}

// How far what my side has under a name is from what golden has under it, both without a partner;
// shards of several processes lie side by side.
std::optional<double> error_by_name(const std::string& operation,
                                    const std::vector<Numbered>& rows) {
  const std::string wanted = without_last_number(operation);
  std::set<std::string> golden_names;
  std::map<std::string, Pair> by_tensor;
  for (const auto& [number, pair] : rows) {
    if (pair.complete() || without_last_number(pair.subject.name) != wanted) continue;
    if (pair.actual.present() && pair.subject.name != operation) continue;
    if (pair.origin.kind == capture::OpKind::kCache) continue;  // most of it is of no token
    if (pair.golden.present()) golden_names.insert(pair.subject.name);
    Pair& both = by_tensor[pair.subject.tensor];
    const auto take = [](const match::Side& from, match::Side& to) {
      to.records.insert(to.records.end(), from.records.begin(), from.records.end());
      if (to.records.size() > 1) to.transform.join = match::Join::kColumns;
    };
    take(pair.golden, both.golden);
    take(pair.actual, both.actual);
  }
  if (golden_names.size() != 1) return std::nullopt;
  std::optional<double> most;
  for (const auto& [tensor, pair] : by_tensor) {
    if (!pair.complete()) continue;
    const auto tensors = compare::load_pair(pair);
    if (!tensors || tensors->first.elements() != tensors->second.elements()) continue;
    const auto compared = metrics::compare(tensors->first.view(), tensors->second.view(), {});
    if (compared) most = std::max(most.value_or(0), compared->relative_euclidean_distance);
  }
  return most;
}

std::optional<Culprit> without_partner(const Finding& finding, const std::vector<Numbered>& rows) {
  for (const std::string& operation : finding.row.origin.passed) {
    const auto error = error_by_name(operation, rows);
    if (!error || !(*error > kFarOff * finding.noise)) continue;
    return Culprit{operation,
                   fmt::format(" {}, which went into it and has no partner, is {} off what golden "
                               "has under that name.",
                               operation, number_text(*error)),
                   {}};
  }
  return std::nullopt;
}

// The row itself, and what computed it where it is only handed on.
std::vector<Numbered> with_its_origin(size_t number, const PairOf& pair_of) {
  std::vector<Numbered> out;
  for (auto pair = pair_of(number); pair; pair = pair_of(number)) {
    out.push_back({number, std::move(*pair)});
    const match::Origin& origin = out.back().pair.origin;
    if (!origin.is_copy || origin.sources.size() != 1 || origin.sources[0] > number) break;
    number -= origin.sources[0];
  }
  return out;
}

// Of an operation that computes something: the name of the input that it was paired as; empty where
// it was not.
std::string paired_as(const Numbered& sum, const PairOf& pair_of) {
  using capture::OpKind;
  const auto& [number, pair] = sum;
  const OpKind kind = pair.origin.kind;
  if (!pair.complete() || pair.origin.is_copy || kind == OpKind::kMove || kind == OpKind::kQuantise)
    return {};
  const auto same = [](const match::Side& a, const match::Side& b) {
    return a.records.size() == 1 && b.records.size() == 1 &&
           a.records[0].path == b.records[0].path && a.records[0].member == b.records[0].member;
  };
  for (const uint32_t back : pair.origin.sources) {
    if (back > number) continue;
    for (const Numbered& source : with_its_origin(number - back, pair_of))
      if (same(source.pair.golden, pair.golden)) return source.pair.subject.name;
  }
  return {};
}

// What computes something and is the same to golden as what went into it has left something out. What
// comes after it shows that golden has not.
std::optional<Culprit> left_out(const Finding& finding, const PairOf& pair_of) {
  for (const size_t source : finding.sources)
    for (const Numbered& sum : with_its_origin(source, pair_of)) {
      const std::string addend = paired_as(sum, pair_of);
      if (addend.empty()) continue;
      const std::string& operation = sum.pair.subject.name;
      Culprit out{
          operation, fmt::format(" {} holds no more than {} put out.", operation, addend), {}};
      out.causes.push_back({"missing-residual",
                            fmt::format("it is {} alone, and nothing was added", addend),
                            finding.error, 0});
      return out;
    }
  return std::nullopt;
}

}  // namespace

std::optional<Culprit> led_astray(const Finding& finding, const PairOf& pair_of) {
  // Modules of torch that have no partner have none of the same name.
  const std::vector<std::string>& passed = finding.row.origin.passed;
  const bool is_library = std::any_of(passed.begin(), passed.end(), [](const std::string& name) {
    return name.find('/') != std::string::npos;
  });
  if (is_library)
    if (auto culprit = without_partner(finding, rows_of_token(finding, pair_of))) return culprit;
  if (finding.verdict() == compare::Verdict::kSuspicious) return std::nullopt;
  return left_out(finding, pair_of);
}

}  // namespace ait::locate
