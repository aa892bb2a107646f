#include "match/by_model.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>

#include "match/by_names.h"

namespace ait::match {
namespace {

using capture::Operation;
using capture::Recording;

struct Model {
  std::string kind;
  std::set<std::string> names;
  std::set<std::string> types;  // with names

  explicit Model(const Recording& recording) : kind(recording.model) {
    for (const Operation& operation : recording.operations) {
      names.insert(operation.name);
      types.insert(operation.name + ":" + operation.type);
    }
  }

  bool same_kind(const Model& other) const { return !kind.empty() && kind == other.kind; }

  bool shares_names(const Model& other) const {
    const auto shared = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return other.names.contains(name);
    });
    // Of the larger one: "root" is a name of every model.
    const size_t more = std::max(names.size(), other.names.size());
    return are_enough_names(static_cast<size_t>(shared), more, more);
  }
};

// From the best reason to the worst that is one.
using Reason = bool (*)(const Model& golden, const Model& actual);
constexpr std::array<Reason, 4> kReasons = {
    [](const Model& golden, const Model& actual) {
      return golden.same_kind(actual) && golden.types == actual.types;
    },
    [](const Model& golden, const Model& actual) { return golden.same_kind(actual); },
    [](const Model& golden, const Model& actual) { return golden.names == actual.names; },
    [](const Model& golden, const Model& actual) { return golden.shares_names(actual); },
};

size_t largest(const std::vector<Model>& models) {
  const auto found = std::max_element(
      models.begin(), models.end(),
      [](const Model& a, const Model& b) { return a.names.size() < b.names.size(); });
  return static_cast<size_t>(found - models.begin());
}

void add(const Coverage& from, Coverage& to) {
  to.operations += from.operations;
  to.paired += from.paired;
  to.copies += from.copies;
  for (const auto& [why, count] : from.alone) to.alone[why] += count;
}

}  // namespace

std::vector<std::pair<size_t, size_t>> pair_models(std::span<const Recording> golden,
                                                   std::span<const Recording> actual) {
  const std::vector<Model> goldens(golden.begin(), golden.end());
  const std::vector<Model> actuals(actual.begin(), actual.end());
  std::vector<std::pair<size_t, size_t>> out;
  std::set<size_t> golden_taken;
  std::set<size_t> actual_taken;
  for (const Reason& holds : kReasons) {
    for (size_t a = 0; a < actuals.size(); ++a) {
      for (size_t g = 0; g < goldens.size() && !actual_taken.contains(a); ++g) {
        if (golden_taken.contains(g) || !holds(goldens[g], actuals[a])) continue;
        golden_taken.insert(g);
        actual_taken.insert(a);
        out.emplace_back(g, a);
      }
    }
  }
  if (out.empty() && !goldens.empty() && !actuals.empty())
    out.emplace_back(largest(goldens), largest(actuals));
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return out;
}

AutomaticPairs put_together(std::vector<AutomaticPairs> found, std::vector<std::string> names) {
  AutomaticPairs out;
  // Layers and tokens are told of the largest model.
  const auto main = std::max_element(found.begin(), found.end(),
                                     [](const AutomaticPairs& a, const AutomaticPairs& b) {
                                       return a.actual.operations < b.actual.operations;
                                     });
  out.golden_layers = main->golden_layers;
  out.actual_layers = main->actual_layers;
  out.tokens = main->tokens;
  std::set<std::string> methods;
  for (size_t i = 0; i < found.size(); ++i) {
    add(found[i].golden, out.golden);
    add(found[i].actual, out.actual);
    out.certain += found[i].certain;
    out.likely += found[i].likely;
    if (methods.insert(found[i].method).second)
      out.method += (out.method.empty() ? "" : "; ") + found[i].method;
    for (const std::string& note : found[i].notes) out.notes.push_back(names[i] + ": " + note);
  }
  struct Parts {
    std::vector<Pairs> pairs;
    std::vector<size_t> first;
    std::vector<std::string> names;
  };
  auto parts = std::make_shared<Parts>();
  parts->names = std::move(names);
  for (AutomaticPairs& each : found) {
    parts->first.push_back(out.pairs.count);
    out.pairs.count += each.pairs.count;
    parts->pairs.push_back(std::move(each.pairs));
  }
  out.pairs.at = [parts = std::move(parts)](size_t index) {
    const auto after = std::upper_bound(parts->first.begin(), parts->first.end(), index);
    const auto part = static_cast<size_t>(after - parts->first.begin()) - 1;
    Pair pair = parts->pairs[part].at(index - parts->first[part]);
    pair.subject.name = parts->names[part] + "/" + pair.subject.name;
    return pair;
  };
  return out;
}

}  // namespace ait::match
