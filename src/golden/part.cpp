#include "golden/part.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ait::golden {

Writes::Writes(size_t input, Shape shape, size_t stretch_elements) {
  output_.shape = std::move(shape);
  output_.written_input = input;
  output_.part = Part{input, stretch_elements, {}};
}

void Writes::add(size_t start, std::span<const double> values, std::span<const double> slack) {
  output_.part->starts.push_back(start);
  output_.values.insert(output_.values.end(), values.begin(), values.end());
  output_.slack.insert(output_.slack.end(), slack.begin(), slack.end());
}

Output Writes::finish(Task& task) && {
  const std::vector<size_t>& starts = output_.part->starts;
  const size_t length = output_.part->stretch_elements;
  std::vector<size_t> order(starts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(starts[a], a) < std::tuple(starts[b], b);
  });
  const auto stretch = [&](const std::vector<double>& of, size_t index) {
    return std::span(of).subspan(index * length, length);
  };
  Output out;
  out.shape = std::move(output_.shape);
  out.written_input = output_.written_input;
  out.part = Part{output_.part->input, length, {}};
  out.values.reserve(output_.values.size());
  out.slack.reserve(output_.slack.size());
  size_t disputed = 0;
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    bool same = true;
    const auto kept = [&] { return stretch(output_.values, order[end - 1]); };
    for (end = first + 1; end < order.size() && starts[order[end]] == starts[order[first]]; ++end)
      same = same && std::ranges::equal(kept(), stretch(output_.values, order[end]));
    out.part->starts.push_back(starts[order[first]]);
    out.values.insert(out.values.end(), kept().begin(), kept().end());
    if (!output_.slack.empty()) {
      const auto slack = stretch(output_.slack, order[end - 1]);
      out.slack.insert(out.slack.end(), slack.begin(), slack.end());
    }
    if (same) continue;
    ++disputed;
    out.undefined.resize(out.values.size() - length);
    out.undefined.resize(out.values.size(), true);
  }
  if (disputed == 0) return out;
  out.undefined.resize(out.values.size());
  task.note(std::to_string(disputed) + " places of input " + std::to_string(out.part->input) +
            " are written several times with different values, so they are not compared");
  return out;
}

}  // namespace ait::golden
