#include "summary/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"
#include "tables/comparison.h"

namespace ait::summary {
namespace {

using match::Pair;
using match::WeighedPartner;
using match::WeighedTensor;

bool is_of(const match::Side& side, const std::string& operation) {
  for (const capture::TensorRecord& record : side.records)
    if (record.operation == operation) return true;
  return false;
}

// "root.model.norm/output", "root.a/output + root.b/output"
std::string side_text(const match::Side& side) {
  std::string out;
  std::set<std::string> named;
  for (const capture::TensorRecord& record : side.records) {
    const std::string file = record.path.substr(record.path.rfind('/') + 1);
    // A table of a whole round has the operation in the name.
    const std::string name =
        record.member.starts_with(record.operation + "/")
            ? record.member
            : record.operation + "/" +
                  (record.member.empty() ? file.substr(0, file.rfind('.')) : record.member);
    if (named.insert(name).second) out += (out.empty() ? "" : " + ") + name;
  }
  return out;
}

std::string transform_text(const Pair& pair) {
  const std::string golden = pair.golden.transform.text();
  const std::string actual = pair.actual.transform.text();
  if (golden.empty()) return actual.empty() ? "" : "mine: " + actual;
  return "golden: " + golden + (actual.empty() ? "" : "; mine: " + actual);
}

// "a.q_proj/output, a.k_proj/output, by a; a.rope in between is compared with nothing"
std::string origin_text(const match::Origin& origin, const std::vector<std::string>& sources) {
  std::string out = fmt::format("{}, by {}", fmt::join(sources, ", "), origin.operation);
  if (sources.empty()) out = fmt::format("nothing that is compared, by {}", origin.operation);
  if (origin.is_copy) out = sources[0] + ", which holds the same";
  if (!origin.passed.empty())
    out += fmt::format("; {} in between {} compared with nothing", fmt::join(origin.passed, ", "),
                       origin.passed.size() == 1 ? "is" : "are");
  return out;
}

std::string pair_text(const Pair& pair, const std::vector<std::string>& sources) {
  std::string out = "token " + pair.token + ", " + tables::data_id(pair.subject);
  std::vector<std::string> lines;
  if (!pair.complete()) {
    lines = {"compared with nothing: " + pair.alone};
  } else {
    lines = {"golden   " + side_text(pair.golden), "my side  " + side_text(pair.actual)};
    if (const std::string how = transform_text(pair); !how.empty())
      lines.push_back("as       " + how);
    lines.push_back(fmt::format("{}: {}", match::word(pair.certainty), pair.why));
    if (pair.unread) lines.push_back("not measured: " + pair.alone);
  }
  if (pair.origin.is_known) lines.push_back("computed from: " + origin_text(pair.origin, sources));
  out = report::visible(out) + "\n";
  for (const std::string& line : lines) out += "  " + report::visible(line) + "\n";
  return out;
}

const char* kind_word(capture::OpKind kind) {
  using capture::OpKind;
  switch (kind) {
    case OpKind::kUnknown:
      return "";
    case OpKind::kEmbedding:
      return "embedding";
    case OpKind::kNorm:
      return "norm";
    case OpKind::kLinear:
      return "linear";
    case OpKind::kActivation:
      return "activation";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kAdd:
      return "add";
    case OpKind::kMultiply:
      return "multiply";
    case OpKind::kRotary:
      return "rotary";
    case OpKind::kCache:
      return "cache";
    case OpKind::kQuantise:
      return "quantise";
    case OpKind::kOther:
      return "other";
    case OpKind::kMove:
      return "move";
  }
  return "";
}

report::JsonArray names_json(const std::vector<std::string>& names) {
  report::JsonArray out;
  out.reserve(names.size());
  for (const std::string& name : names) out.emplace_back(name);
  return out;
}

report::JsonObject origin_json(const match::Origin& origin,
                               const std::vector<std::string>& sources) {
  report::JsonObject out;
  out.set("operation", origin.operation)
      .set("kind", kind_word(origin.kind))
      .set("sources", names_json(sources))
      .set("is_copy", origin.is_copy)
      .set("passed", names_json(origin.passed));
  return out;
}

std::string number(double value) { return fmt::format("{:.3g}", value); }

std::string places_text(const WeighedTensor& tensor) {
  constexpr size_t kNamed = 4;
  std::string out;
  for (size_t i = 0; i < tensor.places.size() && i < kNamed; ++i)
    out += (i > 0 ? "; " : "") + tensor.places[i];
  return out + (tensor.places.size() > kNamed ? "; …" : "");
}

std::string weighed_text(const WeighedTensor& tensor, bool coloured) {
  const std::string type = tensor.type.empty() ? "" : " (" + tensor.type + ")";
  std::string out = fmt::format(
      "\nWhat {} was compared with, the nearest first, in {} {} ({}):\n",
      report::visible(tensor.operation + "/" + tensor.tensor + type), tensor.places.size(),
      tensor.places.size() == 1 ? "place" : "places", report::visible(places_text(tensor)));
  if (tensor.partners.empty())
    return out +
           "  nothing: the other run has no tensor of its size, or it holds nothing by which "
           "it can be told from others\n";
  report::Table table({{tensor.is_golden ? "my tensor" : "golden tensor"},
                       {"type"},
                       {"distance", report::Align::kRight},
                       {"farthest", report::Align::kRight},
                       {"agrees in", report::Align::kRight},
                       {"votes", report::Align::kRight},
                       {"as"}});
  for (const WeighedPartner& partner : tensor.partners) {
    std::string as = partner.form;
    const auto add = [&](const std::string& text) { as += (as.empty() ? "" : "; ") + text; };
    if (partner.same_data > 0)
      add(fmt::format("{} more {} the same data", partner.same_data,
                      partner.same_data == 1 ? "holds" : "hold"));
    if (!partner.is_allowed) add("the mapping file does not allow it");
    table.add({partner.operation + "/" + partner.tensor, partner.type, number(partner.nearest),
               number(partner.farthest), fmt::format("{} of {}", partner.agreeing, partner.places),
               std::to_string(partner.votes), as});
  }
  return out + table.text(coloured);
}

}  // namespace

std::optional<Why> find_why(const match::PairList& list, const std::string& operation) {
  Why out{operation, {}, {}};
  for (size_t i = 0; i < list.pairs.count; ++i) {
    Pair pair = list.pairs.at(i);
    if (!out.pairs.empty() && pair.token != out.pairs.front().token) break;
    if (!is_of(pair.golden, operation) && !is_of(pair.actual, operation)) continue;
    auto& sources = out.sources.emplace_back();
    sources.reserve(pair.origin.sources.size());
    for (size_t each = pair.origin.sources.size(); each-- > 0;)
      sources.push_back(tables::data_id(list.pairs.at(i - pair.origin.sources[each]).subject));
    out.pairs.push_back(std::move(pair));
  }
  if (out.pairs.empty() && (!list.automatic || list.automatic->weighed.empty()))
    return std::nullopt;
  return out;
}

std::vector<std::string> operations_of(const match::PairList& list) {
  std::set<std::string> names;
  for (size_t i = 0; i < list.pairs.count; ++i) {
    const Pair pair = list.pairs.at(i);
    for (const match::Side* side : {&pair.golden, &pair.actual})
      for (const capture::TensorRecord& record : side->records) names.insert(record.operation);
  }
  return {names.begin(), names.end()};
}

std::string why_text(const match::PairList& list, const Why& why, bool coloured) {
  std::string out;
  for (size_t i = 0; i < why.pairs.size(); ++i) out += pair_text(why.pairs[i], why.sources[i]);
  if (why.pairs.empty()) out += "no row of its own: the same data are compared elsewhere\n";
  if (!list.automatic) return out;
  out += fmt::format("operations were paired {}\n", list.automatic->method);
  for (const WeighedTensor& tensor : list.automatic->weighed) out += weighed_text(tensor, coloured);
  return out;
}

report::JsonObject why_json(const match::PairList& list, const Why& why) {
  report::JsonArray pairs;
  for (size_t i = 0; i < why.pairs.size(); ++i) {
    const Pair& pair = why.pairs[i];
    report::JsonObject each;
    each.set("token", pair.token)
        .set("data_id", tables::data_id(pair.subject))
        .set("golden", side_text(pair.golden))
        .set("my", side_text(pair.actual))
        .set("transform", transform_text(pair))
        .set("pairing", pair.complete() ? match::word(pair.certainty) : "")
        .set("reason", pair.complete() ? pair.why : pair.alone);
    if (pair.origin.is_known) each.set("computed_from", origin_json(pair.origin, why.sources[i]));
    pairs.emplace_back(std::move(each));
  }
  report::JsonArray weighed;
  const std::vector<WeighedTensor> none;
  for (const WeighedTensor& tensor : list.automatic ? list.automatic->weighed : none) {
    report::JsonArray partners;
    for (const WeighedPartner& partner : tensor.partners) {
      report::JsonObject each;
      each.set("operation", partner.operation)
          .set("tensor", partner.tensor)
          .set("type", partner.type)
          .set("form", partner.form)
          .set("nearest", partner.nearest)
          .set("farthest", partner.farthest)
          .set("places", uint64_t{partner.places})
          .set("agreeing", uint64_t{partner.agreeing})
          .set("votes", uint64_t{partner.votes})
          .set("same_data", uint64_t{partner.same_data})
          .set("allowed", partner.is_allowed);
      partners.emplace_back(std::move(each));
    }
    report::JsonObject each;
    each.set("side", tensor.is_golden ? "golden" : "my")
        .set("operation", tensor.operation)
        .set("tensor", tensor.tensor)
        .set("type", tensor.type)
        .set("places", names_json(tensor.places))
        .set("partners", std::move(partners));
    weighed.emplace_back(std::move(each));
  }
  report::JsonObject out;
  out.set("operation", why.operation)
      .set("method", list.automatic ? list.automatic->method : "")
      .set("pairs", std::move(pairs))
      .set("weighed", std::move(weighed));
  return out;
}

}  // namespace ait::summary
