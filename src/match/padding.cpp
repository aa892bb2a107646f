#include "match/padding.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

#include "match/sample.h"
#include "metrics/elements.h"

namespace ait::match {
namespace {

using capture::Direction;
using capture::Recording;

// More tokens than any round has.
constexpr size_t kMostTokens = size_t{1} << 22;

bool is_called(const capture::Slot& slot, std::string_view part) {
  std::string name = slot.tensor();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.find(part) != std::string::npos;
}

// How many tokens each of `sequences` sequences has in the round, by what else the model is given.
std::optional<size_t> tokens_of(const Recording& recording, size_t round, uint32_t top,
                                int64_t sequences) {
  for (uint32_t slot = recording.first_slot[top]; slot < recording.first_slot[top + 1]; ++slot) {
    const capture::Slot& each = recording.slots[slot];
    if (each.direction != Direction::kInput || is_called(each, "mask") ||
        !recording.has(0, round, slot))
      continue;
    const auto shape = read_shape(recording.record(0, round, slot));
    if (shape && (shape->size() == 2 || shape->size() == 3) && (*shape)[0] == sequences)
      return static_cast<size_t>((*shape)[1]);
  }
  return std::nullopt;
}

std::shared_ptr<const std::vector<bool>> padding_of(const Tensor& mask, size_t tokens) {
  const auto sequences = static_cast<size_t>(mask.shape()[0]);
  const auto length = static_cast<size_t>(mask.shape()[1]);
  std::vector<double> values(mask.elements());
  metrics::read_elements(mask.view(), 0, values.size(), values.data());
  const bool is_plain = std::all_of(values.begin(), values.end(),
                                    [](double value) { return value == 0 || value == 1; });
  if (!is_plain || tokens > length) return nullptr;
  // A new word is given the mask of all words before it, too: its own are the last columns.
  auto out = std::make_shared<std::vector<bool>>();
  out->reserve(sequences * tokens);
  for (size_t sequence = 0; sequence < sequences; ++sequence)
    for (size_t token = length - tokens; token < length; ++token)
      out->push_back(values[sequence * length + token] == 0);
  const bool hides = std::find(out->begin(), out->end(), true) != out->end();
  return hides ? std::move(out) : nullptr;
}

}  // namespace

std::shared_ptr<const std::vector<bool>> find_padding(const RunSide& side, const SideStep& step) {
  const Recording& recording = side.recording;
  if (recording.traits.types != capture::Traits::Types::kModules || step.round == kNoRound)
    return nullptr;
  for (const uint32_t top : side.programs[step.program].tops) {
    const auto round = round_of(side, step, top);
    for (uint32_t slot = recording.first_slot[top]; round && slot < recording.first_slot[top + 1];
         ++slot) {
      const capture::Slot& each = recording.slots[slot];
      if (each.direction != Direction::kInput || !is_called(each, "attention_mask") ||
          !recording.has(0, *round, slot))
        continue;
      const auto mask = load_tensor(recording.record(0, *round, slot));
      if (!mask || mask->shape().size() != 2 || mask->elements() > kMostTokens) continue;
      const auto tokens = tokens_of(recording, *round, top, mask->shape()[0]);
      return padding_of(*mask, tokens.value_or(static_cast<size_t>(mask->shape()[1])));
    }
  }
  return nullptr;
}

}  // namespace ait::match
