// Which experts a token goes to. What is chosen depends on sums and functions in float32; where two
// candidates are nearer to each other than float32 can tell, what is chosen is open.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "golden/families.h"
#include "golden/rounding.h"
#include "golden/whole.h"

namespace ait::golden {
namespace {

double in_float32(double value) { return round_to(DType::kFloat32, value); }

// A number that candidates are ordered by, and what float32 may be off in it.
struct Score {
  double value = 0;
  double slack = 0;
};

// Whether float32 may see the larger of two as the smaller.
bool may_swap(const Score& larger, const Score& smaller) {
  const double slack = larger.slack + smaller.slack;
  return slack > 0 && larger.value - smaller.value <= slack;
}

// By falling score; of equal ones the first comes first.
std::vector<size_t> ranking(const std::vector<Score>& scores) {
  std::vector<double> values;
  values.reserve(scores.size());
  for (const Score& score : scores) values.push_back(score.value);
  return falling_order(values);
}

bool has_nan(const std::vector<Score>& scores) {
  return std::any_of(scores.begin(), scores.end(),
                     [](const Score& score) { return std::isnan(score.value); });
}

Score sum_of_largest(std::vector<Score> group, size_t count) {
  std::partial_sort(group.begin(), group.begin() + static_cast<ptrdiff_t>(count), group.end(),
                    [](const Score& left, const Score& right) { return left.value > right.value; });
  Score sum;
  double magnitudes = 0;
  for (size_t i = 0; i < count; ++i) {
    sum.value += group[i].value;
    sum.slack += group[i].slack;
    magnitudes += std::abs(group[i].value);
  }
  if (count > 1 && in_float32(sum.value) != sum.value) sum.slack += sum_slack(count, magnitudes);
  return sum;
}

struct GroupKeys {
  size_t groups = 1;
  size_t kept = 1;     // so many groups
  size_t summed = 1;   // so many of the largest in a group are its score
  size_t experts = 1;  // in a group
};

// Checks what parameters say against the columns of the tensor.
Result<GroupKeys> check_groups(const Task& task, const Array& x, int64_t groups, int64_t kept,
                               int64_t summed) {
  if (x.rank() != 2)
    return fail(
        task.contradiction("x of shape " + shape_text(x.shape) + " has not two dimensions"));
  const auto experts = static_cast<int64_t>(x.dim(1));
  if (groups < 1 || experts % groups != 0)
    return fail(task.contradiction(std::to_string(experts) + " experts cannot be cut into " +
                                   std::to_string(groups) + " groups"));
  if (kept < 1 || kept > groups)
    return fail(task.contradiction(std::to_string(kept) + " of " + std::to_string(groups) +
                                   " groups cannot be kept"));
  if (summed < 1 || summed > experts / groups)
    return fail(task.contradiction("there are not " + std::to_string(summed) +
                                   " experts in a group of " + std::to_string(experts / groups)));
  return GroupKeys{static_cast<size_t>(groups), static_cast<size_t>(kept),
                   static_cast<size_t>(summed), static_cast<size_t>(experts / groups)};
}

// Which groups of one token are kept, and of which that is open.
struct Kept {
  std::vector<bool> kept;
  std::vector<bool> open;
};

Kept best_groups(const std::vector<Score>& experts, const GroupKeys& keys) {
  Kept out{std::vector<bool>(keys.groups, false), std::vector<bool>(keys.groups, false)};
  if (has_nan(experts)) {
    out.open.assign(keys.groups, true);
    return out;
  }
  std::vector<Score> scores;
  for (size_t group = 0; group < keys.groups; ++group) {
    const auto first = experts.begin() + static_cast<ptrdiff_t>(group * keys.experts);
    scores.push_back(
        sum_of_largest({first, first + static_cast<ptrdiff_t>(keys.experts)}, keys.summed));
  }
  const std::vector<size_t> order = ranking(scores);
  for (size_t place = 0; place < keys.kept; ++place) out.kept[order[place]] = true;
  if (keys.kept == keys.groups) return out;
  const Score& last_kept = scores[order[keys.kept - 1]];
  const Score& first_dropped = scores[order[keys.kept]];
  for (size_t group = 0; group < keys.groups; ++group)
    out.open[group] = out.kept[group] ? may_swap(scores[group], first_dropped)
                                      : may_swap(last_kept, scores[group]);
  return out;
}

void set_open(Output& output, std::vector<bool> open) {
  if (std::find(open.begin(), open.end(), true) != open.end()) output.undefined = std::move(open);
}

// What float32 is off in a sigmoid: the exponential, as much as x is, and the sum and quotient. An
// exponential that is lost beside 1 leaves exactly 1.
double sigmoid_slack(double x, double y) {
  constexpr double kLost = kFloat32Unit / 4;
  if (1 - y < kLost) return 0;
  return kMargin * kFloat32Unit * y * (kFunctionUnits + (1 - y) * std::abs(x));
}

struct TopkKeys {
  GroupKeys group;
  size_t count = 1;  // experts of a token
  bool norms = true;
  double scale = 1;
};

// The experts of one token and their weights, with what is open of them.
struct Chosen {
  std::vector<size_t> experts;
  std::vector<double> weights;
  std::vector<double> slack;
  std::vector<bool> open_experts;
  std::vector<bool> open_weights;
};

Chosen choose(std::span<const double> x, const std::vector<double>& add, const TopkKeys& keys) {
  std::vector<double> sigmoid(x.size());
  std::vector<double> slack(x.size());
  std::vector<Score> scores(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    sigmoid[i] = 1 / (1 + std::exp(-x[i]));
    slack[i] = sigmoid_slack(x[i], sigmoid[i]);
    // In float32 a sigmoid soon is 1, and equal sums go by their place.
    const auto sum = [&](double off) { return in_float32(in_float32(sigmoid[i] + off) + add[i]); };
    scores[i].value = sum(0);
    const double above = std::abs(sum(slack[i]) - scores[i].value);
    scores[i].slack = std::max(above, std::abs(sum(-slack[i]) - scores[i].value));
  }
  Chosen out;
  out.open_experts.assign(keys.count, false);
  const Kept kept = best_groups(scores, keys.group);
  bool set_is_open = std::find(kept.open.begin(), kept.open.end(), true) != kept.open.end();
  if (set_is_open) out.open_experts.assign(keys.count, true);
  for (size_t i = 0; i < x.size(); ++i)
    if (!kept.kept[i / keys.group.experts]) scores[i] = {};
  // NaN has no place in an order.
  for (Score& score : scores)
    if (std::isnan(score.value)) score = {};
  const std::vector<size_t> order = ranking(scores);
  for (size_t place = 0; place < keys.count && place + 1 < order.size(); ++place) {
    const size_t left = order[place];
    const size_t right = order[place + 1];
    const bool equal = x[left] == x[right] && add[left] == add[right];
    if (equal || !may_swap(scores[left], scores[right])) continue;
    out.open_experts[place] = true;
    if (place + 1 < keys.count)
      out.open_experts[place + 1] = true;
    else
      set_is_open = true;
  }
  out.experts.assign(order.begin(), order.begin() + static_cast<ptrdiff_t>(keys.count));
  double sum = 0;
  double sum_off = 0;
  for (const size_t expert : out.experts) {
    sum += sigmoid[expert];
    sum_off += slack[expert];
  }
  sum_off += sum_slack(keys.count, sum);
  for (const size_t expert : out.experts) {
    const double weight = sigmoid[expert];
    out.weights.push_back(keys.norms ? weight / sum * keys.scale : weight);
    constexpr double kQuotientAndProduct = 2;
    const double relative =
        slack[expert] / weight +
        (keys.norms ? sum_off / sum + kMargin * kQuotientAndProduct * kFloat32Unit : 0);
    out.slack.push_back(weight == 0 ? 0 : relative * std::abs(out.weights.back()));
  }
  out.open_weights = out.open_experts;
  if (keys.norms && set_is_open) out.open_weights.assign(keys.count, true);
  return out;
}

// Experts may have copies: which of them a token goes to depends on its place.
Result<void> map_experts(Task& task, size_t width, std::vector<double>& experts) {
  const Array table = task.values("mappingTable");
  const Array copies = task.values("mappingNum");
  if (table.rank() != 2 || copies.elements() != table.dim(0))
    return fail(task.contradiction("mappingTable of shape " + shape_text(table.shape) +
                                   " and mappingNum of shape " + shape_text(copies.shape) +
                                   " do not go together"));
  for (size_t i = 0; i < experts.size(); ++i) {
    const auto expert = static_cast<size_t>(experts[i]);
    if (expert >= table.dim(0))
      return fail(
          task.contradiction("mappingTable has no row for expert " + std::to_string(expert)));
    const double count = std::max(1.0, copies.data[expert]);
    const size_t token = i / width;
    const double column = std::fmod(static_cast<double>(token), count);
    if (!(column < static_cast<double>(table.dim(1))))
      return fail(task.contradiction("mappingNum gives expert " + std::to_string(expert) +
                                     " more copies than the " + std::to_string(table.dim(1)) +
                                     " of mappingTable"));
    experts[i] = table.row(expert)[static_cast<size_t>(column)];
  }
  return {};
}

}  // namespace

Result<Expected> group_topk(Task& task) {
  const int64_t groups = task.param().integer("groupNum", 1);
  const int64_t kept = task.param().integer("k", 0);
  const bool sums = task.param().choice("groupMultiFlag", graph::GroupMultiFlag::kUndefined) ==
                    graph::GroupMultiFlag::kSumMultiMax;
  const int64_t summed = sums ? task.param().integer("n", 1) : 1;
  if (auto given = task.takes({"x", "?idxArr"}); !given) return fail(given.error());
  Array x = task.values("x");
  const auto keys = check_groups(task, x, groups, kept, summed);
  if (!keys) return fail(keys.error());
  std::vector<bool> open(x.elements(), false);
  for (size_t token = 0; token < x.dim(0); ++token) {
    std::vector<Score> experts;
    for (const double value : x.row(token)) experts.push_back({value, 0});
    const Kept best = best_groups(experts, *keys);
    for (size_t i = 0; i < experts.size(); ++i) {
      const size_t group = i / keys->experts;
      if (!best.kept[group]) x.data[token * experts.size() + i] = 0;
      open[token * experts.size() + i] = best.open[group];
    }
  }
  Output out = exact_output(std::move(x.shape), std::move(x.data));
  set_open(out, std::move(open));
  return task.give({std::move(out)});
}

std::vector<size_t> changed_by_group_topk(graph::AtbParam&) { return {0}; }

Result<Expected> fused_add_topk_div(Task& task) {
  const int64_t groups = task.param().integer("groupNum", 1);
  const int64_t kept = task.param().integer("groupTopk", 1);
  const int64_t summed = task.param().integer("n", 1);
  const int64_t count = task.param().integer("k", 1);
  const auto activation = task.param().choice("activationType", graph::ActivationType::kSigmoid);
  TopkKeys keys;
  keys.norms = task.param().flag("isNorm", true);
  keys.scale = task.param().number("scale", 1);
  const bool maps = task.param().flag("enableExpertMapping", false);
  if (activation != graph::ActivationType::kSigmoid)
    return fail(task.no_golden("activationType " + std::to_string(static_cast<int>(activation))));
  std::vector<std::string_view> names = {"x", "addNum"};
  if (maps) names.insert(names.end(), {"mappingNum", "mappingTable"});
  if (auto given = task.takes(names); !given) return fail(given.error());
  const Array x = task.values("x");
  const Array add = task.values("addNum");
  const auto group = check_groups(task, x, groups, kept, summed);
  if (!group) return fail(group.error());
  keys.group = *group;
  if (add.elements() != x.dim(1))
    return fail(task.contradiction("addNum has " + std::to_string(add.elements()) +
                                   " elements, not one for each of " + std::to_string(x.dim(1)) +
                                   " experts"));
  if (count < 1 || count > static_cast<int64_t>(x.dim(1)))
    return fail(task.contradiction(std::to_string(count) + " of " + std::to_string(x.dim(1)) +
                                   " experts cannot be chosen"));
  keys.count = static_cast<size_t>(count);
  const Shape shape = {static_cast<int64_t>(x.dim(0)), count};
  if (auto room = task.make_room(3 * x.dim(0) * keys.count); !room) return fail(room.error());
  std::vector<double> weights, slack, experts;
  std::vector<bool> open_weights, open_experts;
  const auto append = [](auto& all, const auto& some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  for (size_t token = 0; token < x.dim(0); ++token) {
    const Chosen chosen = choose(x.row(token), add.data, keys);
    append(weights, chosen.weights);
    append(slack, chosen.slack);
    append(experts, chosen.experts);
    append(open_weights, chosen.open_weights);
    append(open_experts, chosen.open_experts);
  }
  if (maps)
    if (auto mapped = map_experts(task, keys.count, experts); !mapped) return fail(mapped.error());
  Output y = exact_output(shape, std::move(weights));
  y.slack = std::move(slack);
  set_open(y, std::move(open_weights));
  Output indices = exact_output(shape, std::move(experts));
  set_open(indices, std::move(open_experts));
  return task.give({std::move(y), std::move(indices)});
}

// Slots (one for each expert of each token) in the order of their experts.
Result<Expected> gating(Task& task) {
  const int64_t per_token = task.param().integer("topkExpertNum", 1);
  const int64_t expert_count = task.param().integer("cumSumNum", 0);
  std::vector<int64_t> mine = task.param().integers("deviceExpert", {});
  if (auto given = task.takes({"topk", "idxArr"}); !given) return fail(given.error());
  const Array topk = task.values("topk");
  const Array slots = task.values("idxArr");
  const size_t count = topk.elements();
  if (per_token < 1 || expert_count < 0)
    return fail(task.contradiction("topkExpertNum is " + std::to_string(per_token) +
                                   " and cumSumNum " + std::to_string(expert_count)));
  if (slots.elements() != count)
    return fail(task.contradiction("idxArr has " + std::to_string(slots.elements()) +
                                   " elements and topk " + std::to_string(count)));
  // Rising: that is falling with the other sign.
  std::vector<double> negative(count);
  std::transform(topk.data.begin(), topk.data.end(), negative.begin(), std::negate<>());
  const std::vector<size_t> order = falling_order(negative);
  const auto shape_of = [](size_t length) { return Shape{static_cast<int64_t>(length)}; };
  const auto token_of = [&](double slot) {
    return std::floor(slot / static_cast<double>(per_token));
  };
  if (expert_count == 0) {
    std::vector<double> original;
    original.reserve(count);
    for (const size_t slot : order) original.push_back(slots.data[slot]);
    task.note("cumSumNum is 0, so only the third output is known");
    Output tokens = exact_output(shape_of(count), std::vector<double>(count, 0.0));
    tokens.undefined.assign(count, true);
    Output sums = exact_output({1}, {0.0});
    sums.undefined.assign(1, true);
    return task.give(
        {std::move(tokens), std::move(sums), exact_output(shape_of(count), std::move(original))});
  }
  const auto experts = indices(task, "topk", static_cast<size_t>(expert_count));
  if (!experts) return fail(experts.error());
  if (auto room = task.make_room(3 * static_cast<size_t>(expert_count)); !room)
    return fail(room.error());
  std::sort(mine.begin(), mine.end());
  const bool all = mine.empty();
  if (!all && (mine.front() < 0 || mine.back() >= expert_count ||
               std::adjacent_find(mine.begin(), mine.end()) != mine.end()))
    return fail(task.contradiction("deviceExpert does not name some of " +
                                   std::to_string(expert_count) + " experts"));
  if (all) {
    mine.resize(static_cast<size_t>(expert_count));
    std::iota(mine.begin(), mine.end(), int64_t{0});
  }
  std::vector<double> counts(static_cast<size_t>(expert_count), 0.0);
  for (const size_t expert : *experts) ++counts[expert];
  std::vector<double> sums;
  sums.reserve(mine.size());
  for (const int64_t expert : mine)
    sums.push_back((sums.empty() ? 0 : sums.back()) + counts[static_cast<size_t>(expert)]);
  std::vector<double> original, tokens;
  for (const size_t slot : order)
    if (all ||
        std::binary_search(mine.begin(), mine.end(), static_cast<int64_t>((*experts)[slot]))) {
      original.push_back(slots.data[slot]);
      tokens.push_back(token_of(slots.data[slot]));
    }
  const size_t valid = original.size();
  // Behind the slots of this device's experts there may be anything.
  const auto padded = [&](std::vector<double> numbers) {
    numbers.resize(count, 0.0);
    Output out = exact_output(shape_of(count), std::move(numbers));
    std::vector<bool> open(count, false);
    std::fill(open.begin() + static_cast<ptrdiff_t>(valid), open.end(), true);
    set_open(out, std::move(open));
    return out;
  };
  std::vector<Output> outputs;
  outputs.push_back(padded(std::move(tokens)));
  outputs.push_back(exact_output(shape_of(mine.size()), std::move(sums)));
  outputs.push_back(padded(std::move(original)));
  if (!all) outputs.push_back(exact_output({1}, {static_cast<double>(valid)}));
  return task.give(std::move(outputs));
}

}  // namespace ait::golden
