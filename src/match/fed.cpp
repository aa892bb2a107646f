#include "match/fed.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "match/layers.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::kNoOperation;
using capture::Moment;
using capture::Operation;
using capture::OpKind;
using capture::Recording;
using capture::Slot;

// Rows of the same token differ by rounding, by the quantisation of a table at most.
constexpr double kSameRow = 0.3;

// Rows of different tokens have a cosine of about 0, give or take 1/sqrt(columns), and are about
// equally long. What a fault leaves of a row points to where it did (noise as large as the row: 0.7),
// or is much longer or shorter.
constexpr double kOtherCosine = 0.6;
constexpr double kOtherLength = 3;

// So many numbers in a row that count upwards are positions, whatever their file is called.
constexpr size_t kFewestPositions = 4;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Whether an operation, or one that it lies in, looks up rows of a table.
bool looks_up(const Recording& recording, uint32_t operation) {
  for (uint32_t i = operation; i != kNoOperation; i = recording.operations[i].parent)
    if (recording.operations[i].kind == OpKind::kEmbedding) return true;
  return contains(lower(recording.operations[operation].type), "gather");
}

bool count_upwards(const std::vector<int64_t>& numbers) {
  for (size_t i = 1; i < numbers.size(); ++i)
    if (numbers[i] != numbers[i - 1] + 1) return false;
  return numbers.size() >= kFewestPositions;
}

// Whether one is the other again and again: another batch of the same input.
bool is_repeated(const std::vector<int64_t>& once, const std::vector<int64_t>& often) {
  if (often.size() % once.size() != 0) return false;
  for (size_t i = 0; i < often.size(); ++i)
    if (often[i] != once[i % once.size()]) return false;
  return true;
}

// Whether one is the other with a padding of one and the same number in between.
bool is_padded(const std::vector<int64_t>& plain, const std::vector<int64_t>& padded) {
  std::optional<int64_t> padding;
  size_t at = 0;
  for (const int64_t number : padded) {
    if (at < plain.size() && number == plain[at] && padding != number) {
      ++at;
    } else {
      if (padding && *padding != number) return false;
      padding = number;
    }
  }
  return at == plain.size();
}

// Without a cache a model is given the whole sequence for each new word, and a batch holds other
// sequences, too.
bool holds(const std::vector<int64_t>& all, const std::vector<int64_t>& part) {
  return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

// Of ids, or of positions, of both sides.
Fed compare_numbers(const std::vector<int64_t>& golden, const std::vector<int64_t>& actual) {
  if (golden == actual) return Fed::kSame;
  const auto& fewer = golden.size() < actual.size() ? golden : actual;
  const auto& more = golden.size() < actual.size() ? actual : golden;
  if (fewer.size() != more.size()) {
    if (is_repeated(fewer, more) || is_padded(fewer, more)) return Fed::kSame;
    return holds(more, fewer) ? Fed::kUnknown : Fed::kOther;
  }
  // The same in another order: a batch whose sequences lie otherwise.
  std::vector<int64_t> one = golden;
  std::vector<int64_t> other = actual;
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  return one == other ? Fed::kUnknown : Fed::kOther;
}

std::string first_other(const std::vector<int64_t>& golden, const std::vector<int64_t>& actual) {
  const size_t count = std::min(golden.size(), actual.size());
  for (size_t i = 0; i < count; ++i)
    if (golden[i] != actual[i])
      return (count == 1 ? "" : "place " + std::to_string(i) + ": ") + "golden " +
             std::to_string(golden[i]) + ", my side " + std::to_string(actual[i]);
  return "golden has " + std::to_string(golden.size()) + " of them, my side " +
         std::to_string(actual.size());
}

// Of one row: the same token, another one, or nothing that tells it.
Fed compare_rows(const std::vector<float>& golden, const std::vector<float>& actual) {
  double gg = 0;
  double aa = 0;
  double ga = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    const double g = golden[i];
    const double a = actual[i];
    if (!std::isfinite(g) || !std::isfinite(a)) return Fed::kUnknown;
    gg += g * g;
    aa += a * a;
    ga += g * a;
  }
  const double longer = std::sqrt(std::max(gg, aa));
  const double shorter = std::sqrt(std::min(gg, aa));
  if (shorter == 0) return Fed::kUnknown;
  if (std::sqrt(std::max(gg + aa - 2 * ga, 0.0)) <= kSameRow * longer) return Fed::kSame;
  const bool is_other = ga < kOtherCosine * longer * shorter && longer <= kOtherLength * shorter;
  return is_other ? Fed::kOther : Fed::kUnknown;
}

}  // namespace

const Feeding::Slots& Feeding::slots_of(bool is_golden, size_t program) {
  const auto [place, is_new] = slots_.try_emplace({is_golden, program});
  Slots& out = place->second;
  if (!is_new) return out;
  const Recording& recording = side(is_golden).recording;
  const Program& p = side(is_golden).programs[program];
  const uint32_t first_layer =
      p.layers.empty() ? kNoOperation : p.layers.front().operations.front();
  std::vector<uint32_t> named;  // as what they are
  std::vector<uint32_t> unnamed;
  const auto each_slot = [&](uint32_t operation, const auto& visit) {
    for (uint32_t i = recording.first_slot[operation]; i < recording.first_slot[operation + 1]; ++i)
      visit(i, recording.slots[i]);
  };
  for (const uint32_t operation : p.outside.operations) {
    const Operation& it = recording.operations[operation];
    each_slot(operation, [&](uint32_t i, const Slot& slot) {
      const std::string tensor = lower(slot.tensor());
      const std::string name = lower(it.name + " " + it.type) + " " + tensor;
      const bool is_output = slot.direction == Direction::kOutput;
      if (is_output && slot.moment == Moment::kAfter && operation < first_layer &&
          is_leaf(recording, operation))
        out.stream.insert(out.stream.begin(), i);  // the last one is the nearest
      if (is_output || slot.call > 0) return;
      if (contains(name, "position") || contains(name, "rotary"))
        out.positions.push_back(i);
      else if (contains(tensor, "input_ids"))
        named.push_back(i);
      else if (looks_up(recording, operation) && !contains(name, "type_"))
        out.ids.push_back(i);
      else if (it.parent == kNoOperation && tensor == "input_0")
        unnamed.push_back(i);
    });
  }
  out.ids.insert(out.ids.begin(), named.begin(), named.end());
  out.ids.insert(out.ids.end(), unnamed.begin(), unnamed.end());
  if (first_layer == kNoOperation) return out;
  each_slot(first_layer, [&](uint32_t i, const Slot& slot) {
    const bool is_output = slot.direction == Direction::kOutput;
    if (is_output && !out.layer_output) out.layer_output = i;
    if (!is_output && recording.traits.inputs_are_values) out.stream.insert(out.stream.begin(), i);
  });
  return out;
}

Feeding::Numbers Feeding::integers_of(bool is_golden, const SideStep& step,
                                      const std::vector<uint32_t>& slots) const {
  const RunSide& from = side(is_golden);
  for (const uint32_t slot : slots) {
    const auto round = round_of(from, step, from.recording.slots[slot].operation);
    if (!round || !from.recording.has(0, *round, slot)) continue;
    if (auto found = read_integers(from.recording.record(0, *round, slot)))
      return std::move(found->numbers);
  }
  return std::nullopt;
}

std::optional<Sample> Feeding::stream_of(bool is_golden, const SideStep& step,
                                         const Tokens& tokens) {
  const RunSide& from = side(is_golden);
  const Slots& slots = slots_of(is_golden, step.program);
  const auto read = [&](uint32_t slot) -> std::optional<Sample> {
    const auto round = round_of(from, step, from.recording.slots[slot].operation);
    if (!round || !from.recording.has(0, *round, slot)) return std::nullopt;
    auto sample = read_sample(from.recording.record(0, *round, slot), tokens);
    if (!sample || !sample->is_float || sample->last_only || !sample->informative())
      return std::nullopt;
    return sample;
  };
  if (!slots.layer_output) return std::nullopt;
  const auto after = read(*slots.layer_output);
  if (!after) return std::nullopt;
  for (const uint32_t slot : slots.stream)
    if (auto sample = read(slot); sample && sample->columns == after->columns) return sample;
  return std::nullopt;
}

void Feeding::compare_streams(const Step& step, FedTokens& out) {
  const auto [golden_tokens, actual_tokens] = tokens_of_(step);
  // Rows of a batch, and of what is padded, may stand in another order.
  if (golden_tokens.count != actual_tokens.count) return;
  const auto golden = stream_of(true, step.golden, golden_tokens);
  const auto actual = stream_of(false, step.actual, actual_tokens);
  if (!golden || !actual || golden->columns != actual->columns) return;
  size_t same = 0;
  size_t other = 0;
  const size_t rows = std::min(golden->rows.size(), actual->rows.size());
  for (size_t row = 0; row < rows; ++row) {
    const Fed fed = compare_rows(golden->rows[row], actual->rows[row]);
    same += fed == Fed::kSame ? 1 : 0;
    other += fed == Fed::kOther ? 1 : 0;
  }
  out.some_rows_same = same > 0;
  if (same == rows) out.tokens = Fed::kSame;
  if (other > 0 && golden_tokens.sequences <= 1 && actual_tokens.sequences <= 1)
    out.tokens = Fed::kOther;
}

FedTokens Feeding::at(const Step& step) {
  FedTokens out;
  const Slots& golden = slots_of(true, step.golden.program);
  const Slots& actual = slots_of(false, step.actual.program);
  const Numbers golden_positions = positions_of(true, step.golden);
  const Numbers actual_positions = positions_of(false, step.actual);
  if (golden_positions && actual_positions)
    out.positions = compare_numbers(*golden_positions, *actual_positions);
  const Numbers golden_ids = integers_of(true, step.golden, golden.ids);
  const Numbers actual_ids = integers_of(false, step.actual, actual.ids);
  const bool are_ids =
      golden_ids && actual_ids && !count_upwards(*golden_ids) && !count_upwards(*actual_ids);
  const Fed by_ids = are_ids ? compare_numbers(*golden_ids, *actual_ids) : Fed::kUnknown;
  if (by_ids == Fed::kSame) {
    out.by_ids = true;
    out.tokens = Fed::kSame;
    return out;
  }
  compare_streams(step, out);
  // What is the same to a row was fed the same, whatever the numbers are that were taken for ids.
  if (by_ids == Fed::kOther && out.tokens != Fed::kSame) {
    out.by_ids = true;
    out.tokens = Fed::kOther;
    out.first_other = first_other(*golden_ids, *actual_ids);
  }
  return out;
}

void mark_other_tokens(Feeding& feeding, bool is_mapped, Alignment& alignment) {
  std::vector<Step*> steps;
  steps.reserve(alignment.steps.size());
  for (Step& step : alignment.steps) steps.push_back(&step);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step* a, const Step* b) { return a->number < b->number; });
  std::vector<FedTokens> fed;
  fed.reserve(steps.size());
  for (const Step* step : steps) fed.push_back(feeding.at(*step));
  // That rows are the same elsewhere shows that both sides look them up alike.
  const bool rows_tell = std::any_of(fed.begin(), fed.end(),
                                     [](const FedTokens& each) { return each.some_rows_same; });
  std::string since;  // the token from which on this sequence is another
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]->is_prefill) since.clear();
    if (since.empty() && fed[i].tokens == Fed::kOther && (fed[i].by_ids || rows_tell)) {
      since = steps[i]->token;
      const std::string what =
          "fed different tokens from token " + since + " on" +
          (fed[i].by_ids ? " (" + fed[i].first_other + ")"
                         : ", as what goes into the first layer is unrelated there; a fault of the "
                           "embedding looks the same if inputs were not recorded");
      alignment.notes.push_back(
          "the runs were " + what +
          (is_mapped ? "; they are compared all the same, as --token-map says"
                     : ": rows say which tensors correspond, and nothing is measured"));
    }
    if (!since.empty() && !is_mapped)
      steps[i]->not_comparable = "the runs were fed different tokens from token " + since + " on.";
  }
}

}  // namespace ait::match
