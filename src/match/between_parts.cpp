#include "match/between_parts.h"

#include <algorithm>
#include <iterator>

#include "match/combination.h"
#include "match/selection.h"

namespace ait::match {

using capture::Direction;
using capture::kNoOperation;
using capture::OpKind;

namespace {

// What goes into the sum of a residual addition was computed not long ago.
constexpr size_t kMostCandidates = 16;

}  // namespace

// What there is when a container computes something itself.
struct BetweenParts::Between {
  uint32_t container = kNoOperation;
  uint32_t end = 0;               // what began before this has ended
  std::vector<uint32_t> results;  // of the operations that it has called
  std::vector<uint32_t> between;  // what it has computed itself
  std::vector<uint32_t> given;    // its own inputs
};

uint32_t root_of(const RunSlots& slots, const std::vector<Made>& made, uint32_t index) {
  while (made[index].is_copy && slots.is_input(index)) index = made[index].sources[0];
  return index;
}

void BetweenParts::list_readers(const std::vector<uint32_t>& operations) {
  for (const uint32_t each : operations)
    slots_.each_slot(each, Direction::kInput,
                     [&](uint32_t input) { readers_[root(input)].push_back(each); });
}

void BetweenParts::compose(uint32_t index) {
  if (!is_open_[index]) return;
  const Between at = between_at(index);
  Made& made = made_[index];
  made.is_known = true;
  made.operation = at.container;
  if (combine(index, at) || select(index, at)) return;
  made.kind = slots_.is_input(index) ? OpKind::kUnknown : slots_.operation(at.container).kind;
  made.sources = unread(index, at);
  std::sort(made.sources.begin(), made.sources.end());
}

BetweenParts::Between BetweenParts::between_at(uint32_t index) const {
  const uint32_t from = slots_.slot(index).operation;
  Between out;
  out.container = slots_.is_input(index) ? slots_.around(from) : from;
  out.end = slots_.is_input(index) ? from : slots_.operation(from).end;
  slots_.each_part(out.container, out.end, [&](uint32_t part) {
    slots_.each_slot(part, Direction::kOutput, [&](uint32_t each) { out.results.push_back(each); });
    slots_.each_slot(part, Direction::kInput, [&](uint32_t each) {
      if (is_open_[each]) out.between.push_back(each);
    });
  });
  slots_.each_slot(out.container, Direction::kInput, [&](uint32_t each) {
    if (contents_[each].is_read()) out.given.push_back(each);
  });
  return out;
}

// Those that may have gone into a tensor, the latest first.
template <typename Fits>
std::vector<uint32_t> BetweenParts::candidates(const Between& at, const Fits& fits) const {
  std::vector<uint32_t> out = at.results;
  out.insert(out.end(), at.between.begin(), at.between.end());
  std::sort(out.begin(), out.end(),
            [&](uint32_t a, uint32_t b) { return slots_.time_of(a) > slots_.time_of(b); });
  std::erase_if(out, [&](uint32_t each) { return !fits(contents_[each]); });
  out.resize(std::min(out.size(), kMostCandidates));
  std::copy_if(at.given.begin(), at.given.end(), std::back_inserter(out),
               [&](uint32_t each) { return fits(contents_[each]); });
  return out;
}

bool BetweenParts::combine(uint32_t index, const Between& at) {
  const Content& content = contents_[index];
  const std::vector<uint32_t> parts =
      candidates(at, [&](const Content& each) { return each.elements == content.elements; });
  std::vector<const Content*> contents;
  contents.reserve(parts.size());
  for (const uint32_t each : parts) contents.push_back(&contents_[each]);
  const auto found = find_combination(content, contents);
  if (!found) return false;
  made_[index].kind = found->kind;
  for (const size_t part : found->parts) {
    made_[index].sources.push_back(parts[part]);
    readers_[root(parts[part])].push_back(slots_.slot(index).operation);
  }
  return true;
}

bool BetweenParts::select(uint32_t index, const Between& at) {
  const Content& content = contents_[index];
  const std::vector<uint32_t> wholes =
      candidates(at, [&](const Content& each) { return each.elements > content.elements; });
  const auto part = wholes.empty() ? std::nullopt : load_(index);
  for (const uint32_t each : wholes) {
    const auto whole = part ? load_(each) : std::nullopt;
    const Selection found = whole ? find_selection(*part, *whole) : Selection::kNone;
    if (found == Selection::kNone) continue;
    made_[index].kind = OpKind::kMove;
    made_[index].sources = {each};
    if (found == Selection::kRows) {
      readers_[root(each)].push_back(slots_.slot(index).operation);
      add_choice(index, at);
    }
    return true;
  }
  return false;
}

// Which tokens an expert is given depends on what a router has put out.
void BetweenParts::add_choice(uint32_t index, const Between& at) {
  const uint32_t from = slots_.slot(index).operation;
  const auto is_twin = [&](uint32_t other) {
    return other != from && slots_.operation(other).type == slots_.operation(from).type;
  };
  bool has_twin = false;
  slots_.each_part(at.container, slots_.operation(at.container).end,
                   [&](uint32_t part) { has_twin |= is_twin(part); });
  if (!slots_.is_input(index) || !has_twin) return;
  for (const uint32_t each : at.results)
    if (!is_twin(slots_.slot(each).operation) && !is_read_in(each, at.container, at.end))
      made_[index].sources.push_back(each);
}

// All that was there and that nobody had read, and what can be seen in it.
std::vector<uint32_t> BetweenParts::unread(uint32_t index, const Between& at) const {
  const auto is_put_out = [&](uint32_t value) {
    bool out = false;
    if (!slots_.is_input(index))
      slots_.each_slot(at.container, Direction::kOutput, [&](uint32_t other) {
        out |= other != index && made_[other].is_copy && made_[other].sources[0] == value;
      });
    return out;
  };
  // What the same operation reads as well counts only where there is nothing else.
  for (const uint32_t end : {slots_.is_input(index) ? at.end + 1 : at.end, at.end}) {
    std::vector<uint32_t> out;
    for (const uint32_t each : at.results)
      if (!is_read_in(each, at.container, end) && !is_put_out(each)) out.push_back(each);
    for (const uint32_t each : at.given)
      if (!is_read_in(root(each), at.container, end)) out.push_back(each);
    if (out.empty()) continue;
    // What was read may have been added all the same.
    for (const auto* others : {&at.given, &at.between})
      for (const uint32_t each : *others)
        if (std::find(out.begin(), out.end(), each) == out.end() &&
            goes_along(contents_[each], contents_[index]))
          out.push_back(each);
    return out;
  }
  std::vector<uint32_t> out = at.given;
  out.insert(out.end(), at.between.begin(), at.between.end());
  return out;
}

// Whether something that a container called before `end` read a tensor.
bool BetweenParts::is_read_in(uint32_t value, uint32_t container, uint32_t end) const {
  const auto found = readers_.find(value);
  return found != readers_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](uint32_t reader) { return reader > container && reader < end; });
}

}  // namespace ait::match
