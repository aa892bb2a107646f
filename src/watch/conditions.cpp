#include "watch/conditions.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace ait::watch {
namespace {

using Kind = Condition::Kind;

constexpr double kMaxEvery = 1e15;  // no run has so many rounds, and a double counts as far

struct Word {
  std::string_view opening;
  Kind kind;
  bool has_number;
};
constexpr Word kWords[] = {{"nan", Kind::kNan, false},
                           {"inf", Kind::kInf, false},
                           {"norm>", Kind::kNorm, true},
                           {"every=", Kind::kEvery, true},
                           {"spike=", Kind::kSpike, true}};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// What a number must be; empty where it is.
std::string_view wrong_number(Kind kind, const std::optional<double>& number) {
  switch (kind) {
    case Kind::kNorm:
      return number && *number >= 0 ? "" : "X must be a number, 0 or above";
    case Kind::kEvery:
      return number && *number >= 1 && *number <= kMaxEvery && *number == std::floor(*number)
                 ? ""
                 : "N must be a whole number, 1 or above";
    case Kind::kSpike:
      return number && *number > 1 ? "" : "F must be a number above 1";
    case Kind::kNan:
    case Kind::kInf:
      break;
  }
  return "";
}

Error wrong(std::string_view word, std::string_view why) {
  return Error(ErrorCode::kUsage)
         << "'" << printable(std::string(word)) << "' " << why
         << ": give a comma list of nan, inf, norm>X, every=N and spike=F, as in nan,spike=10";
}

Result<Condition> parse_condition(std::string_view text) {
  for (const Word& word : kWords) {
    if (word.has_number ? !text.starts_with(word.opening) : text != word.opening) continue;
    Condition out{word.kind, 0, std::string(text)};
    if (!word.has_number) return out;
    const auto number = number_of(text.substr(word.opening.size()));
    if (const std::string_view why = wrong_number(word.kind, number); !why.empty())
      return fail(wrong(text, std::string("is no condition, ") + std::string(why)));
    out.limit = *number;
    return out;
  }
  return fail(
      wrong(text, text.empty() ? "stands where a condition is expected" : "is no condition"));
}

}  // namespace

Result<std::vector<Condition>> parse_conditions(std::string_view list) {
  std::vector<Condition> out;
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    auto condition = parse_condition(trimmed(list.substr(0, comma)));
    if (!condition) return fail(condition.error());
    if (more) list.remove_prefix(comma + 1);
    const bool is_new = std::none_of(out.begin(), out.end(), [&](const Condition& each) {
      return each.kind == condition->kind && each.limit == condition->limit;
    });
    if (is_new) out.push_back(std::move(*condition));
  }
  return out;
}

}  // namespace ait::watch
