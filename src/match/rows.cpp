#include "match/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ait::match {
namespace {

// Rows of the same token differ by rounding, those of two tokens by more than their size.
constexpr double kSameRow = 0.2;

// The row that holds the same is this much nearer than the next.
constexpr double kClearRow = 0.5;

// Each of so many rows can be held against each.
constexpr size_t kMostPairedRows = 2048;

// Where rows are arranged as is supposed, all but a few that a fault spoiled agree.
constexpr double kMostRows = 0.9;

// Whether a row of golden and one of mine hold the same token.
class Likeness {
 public:
  Likeness(const RowTable& golden, const RowTable& actual) : golden_(golden), actual_(actual) {}

  bool operator()(size_t golden, size_t actual) const {
    return golden < golden_.size() && actual < actual_.size() &&
           distance(golden, actual) <= kSameRow;
  }

  // Relative to the larger of the two; infinite where that is not known.
  double distance(size_t golden, size_t actual) const {
    const std::vector<float>& g = golden_[golden];
    const std::vector<float>& a = actual_[actual];
    double size = 0;
    double apart = 0;
    if (g.size() != a.size()) return std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < g.size(); ++i) {
      const double difference = double{g[i]} - a[i];
      size += std::max(double{g[i]} * g[i], double{a[i]} * a[i]);
      apart += difference * difference;
    }
    if (!std::isfinite(apart)) return std::numeric_limits<double>::infinity();
    return apart == 0 ? 0 : std::sqrt(apart / size);
  }
  Likeness mirrored() const { return {actual_, golden_}; }

 private:
  const RowTable& golden_;
  const RowTable& actual_;
};

// Rows of both sides in the order in which they correspond.
struct Arrangement {
  std::vector<uint32_t> golden;
  std::vector<uint32_t> actual;
  std::vector<uint32_t> golden_last;
  std::vector<uint32_t> actual_last;
  std::vector<std::pair<uint32_t, uint32_t>> sequences;

  void swap_sides() {
    std::swap(golden, actual);
    std::swap(golden_last, actual_last);
  }
  void add(uint32_t golden_row, uint32_t actual_row) {
    golden.push_back(golden_row);
    actual.push_back(actual_row);
  }
  void end_sequence() {
    golden_last.push_back(golden.back());
    actual_last.push_back(actual.back());
  }
};

struct Batch {
  uint32_t sequences;
  uint32_t length;  // of each

  explicit Batch(const Tokens& tokens)
      : sequences(static_cast<uint32_t>(std::max<size_t>(tokens.sequences, 1))),
        length(static_cast<uint32_t>(tokens.count) / sequences) {}
};

// [sequence, position] against [position, sequence].
Arrangement by_position(const Batch& batch) {
  Arrangement out;
  for (uint32_t sequence = 0; sequence < batch.sequences; ++sequence) {
    for (uint32_t position = 0; position < batch.length; ++position)
      out.add(sequence * batch.length + position, position * batch.sequences + sequence);
    out.end_sequence();
  }
  return out;
}

// A padded batch against its sequences without padding, one after the other. How long they are is
// found from the rows that agree; nothing where that can be answered in two ways.
class Unpadded {
 public:
  Unpadded(const Batch& batch, size_t packed, bool left, const Likeness& alike)
      : batch_(batch), packed_(packed), left_(left), alike_(alike) {}

  std::optional<Arrangement> find() {
    search(0, 0);
    if (answers_.size() != 1) return std::nullopt;
    Arrangement out;
    uint32_t at = 0;
    for (uint32_t sequence = 0; sequence < batch_.sequences; ++sequence) {
      const uint32_t length = answers_[0][sequence];
      for (uint32_t i = 0; i < length; ++i) out.add(padded_row(sequence, i, length), at + i);
      out.end_sequence();
      at += length;
    }
    return out;
  }

 private:
  uint32_t padded_row(uint32_t sequence, uint32_t i, uint32_t length) const {
    return sequence * batch_.length + i + (left_ ? batch_.length - length : 0);
  }

  void search(uint32_t sequence, uint32_t at) {
    if (sequence == batch_.sequences) {
      if (at == packed_) answers_.push_back(lengths_);
      return;
    }
    for (uint32_t length = batch_.length; length > 0 && answers_.size() < 2; --length) {
      if (at + length > packed_ || !agrees(sequence, at, length)) continue;
      lengths_.push_back(length);
      search(sequence + 1, at + length);
      lengths_.pop_back();
    }
  }

  bool agrees(uint32_t sequence, uint32_t at, uint32_t length) const {
    for (uint32_t i = 0; i < length; ++i)
      if (!alike_(padded_row(sequence, i, length), at + i)) return false;
    return true;
  }

  Batch batch_;
  size_t packed_;
  bool left_;
  const Likeness& alike_;
  std::vector<uint32_t> lengths_;
  std::vector<std::vector<uint32_t>> answers_;
};

// Sequences of two batches that are padded to different lengths, or not all of which the other one
// has. They end together, or begin together; each goes with the first that agrees and is free.
std::optional<Arrangement> sequence_by_sequence(
    const Batch& golden, const Batch& actual, bool left,
    const std::vector<std::pair<uint32_t, uint32_t>>& known, const Likeness& alike) {
  const uint32_t length = std::min(golden.length, actual.length);
  const auto first_row = [&](const Batch& batch, uint32_t sequence) {
    return sequence * batch.length + (left ? batch.length - length : 0);
  };
  Arrangement out;
  std::vector<bool> used(actual.sequences);
  for (uint32_t g = 0; g < golden.sequences; ++g) {
    for (uint32_t a = 0; a < actual.sequences; ++a) {
      uint32_t same = 0;
      while (same < length && alike(first_row(golden, g) + same, first_row(actual, a) + same))
        ++same;
      const bool may_be =
          known.empty() || std::find(known.begin(), known.end(), std::pair(g, a)) != known.end();
      if (used[a] || same < length || !may_be) continue;
      used[a] = true;
      out.sequences.emplace_back(g, a);
      for (uint32_t i = 0; i < length; ++i)
        out.add(first_row(golden, g) + i, first_row(actual, a) + i);
      out.end_sequence();
      break;
    }
  }
  if (out.golden_last.size() < std::min(golden.sequences, actual.sequences)) return std::nullopt;
  return out;
}

// Whether most rows agree where row i goes with row i, the smaller side being repeated.
bool agree_as_they_lie(size_t golden_rows, size_t actual_rows, const Likeness& alike) {
  const size_t rows = std::max(golden_rows, actual_rows);
  if (rows % golden_rows != 0 || rows % actual_rows != 0) return false;
  size_t same = 0;
  for (size_t i = 0; i < rows; ++i) same += alike(i % golden_rows, i % actual_rows) ? 1 : 0;
  return static_cast<double>(same) >= kMostRows * static_cast<double>(rows);
}

bool agrees(const Arrangement& arrangement, const Likeness& alike) {
  size_t same = 0;
  for (size_t i = 0; i < arrangement.golden.size(); ++i)
    same += alike(arrangement.golden[i], arrangement.actual[i]) ? 1 : 0;
  return static_cast<double>(same) >= kMostRows * static_cast<double>(arrangement.golden.size());
}

// The arrangements that the numbers of rows allow and two tables bear out.
std::optional<Arrangement> arrangement_of(const RowsSide& golden, const RowsSide& actual,
                                          const std::vector<std::pair<uint32_t, uint32_t>>& known,
                                          const Likeness& alike) {
  const Batch g(golden.tokens);
  const Batch a(actual.tokens);
  const size_t golden_rows = golden.tokens.count;
  const size_t actual_rows = actual.tokens.count;
  if (golden_rows == actual_rows) {
    if (g.sequences > 1) {
      Arrangement found = by_position(g);
      if (agrees(found, alike)) return found;
    }
    if (a.sequences > 1) {
      Arrangement found = by_position(a);
      found.swap_sides();
      if (agrees(found, alike)) return found;
    }
  }
  for (const bool left : {true, false}) {
    if (!golden.is_packed && actual.is_packed && golden_rows > actual_rows)
      if (auto found = Unpadded(g, actual_rows, left, alike).find()) return found;
    if (!actual.is_packed && golden.is_packed && actual_rows > golden_rows) {
      const Likeness mirrored = alike.mirrored();
      if (auto found = Unpadded(a, golden_rows, left, mirrored).find()) {
        found->swap_sides();
        return found;
      }
    }
    if (!golden.is_packed && !actual.is_packed)
      if (auto found = sequence_by_sequence(g, a, left, known, alike)) return found;
  }
  return std::nullopt;
}

// A padded batch against its sequences one after the other, as the mask says it. Positions of the
// packed ones begin anew with each sequence; where they were recorded, they have to do so there.
std::optional<Arrangement> by_mask(const RowsSide& padded, const RowsSide& packed) {
  if (!padded.padding || padded.padding->size() != padded.tokens.count || !packed.is_packed)
    return std::nullopt;
  const Batch batch(padded.tokens);
  const bool has_positions = packed.positions.size() == packed.tokens.count;
  Arrangement out;
  uint32_t at = 0;
  for (uint32_t sequence = 0; sequence < batch.sequences; ++sequence) {
    const uint32_t first = at;
    for (uint32_t i = 0; i < batch.length; ++i) {
      const uint32_t row = sequence * batch.length + i;
      if ((*padded.padding)[row]) continue;
      const bool follows =
          at > 0 && has_positions && packed.positions[at] == packed.positions[at - 1] + 1;
      if (at == packed.tokens.count || (has_positions && follows == (at == first)))
        return std::nullopt;
      out.add(row, at++);
    }
    if (at == first) return std::nullopt;
    out.end_sequence();
  }
  if (at != packed.tokens.count) return std::nullopt;
  return out;
}

// Whether a row agrees with another one than that which an arrangement gives to it: then sequences
// lie in another order.
bool is_contradicted(const Arrangement& arrangement, const Likeness& alike) {
  constexpr size_t kEnough = 256;  // rows that are looked for
  const size_t rows = arrangement.golden.size();
  const size_t step = std::max<size_t>(1, rows / kEnough);
  for (size_t i = 0; i < rows; i += step) {
    if (alike(arrangement.golden[i], arrangement.actual[i])) continue;
    for (const uint32_t other : arrangement.actual)
      if (alike(arrangement.golden[i], other)) return true;
  }
  return false;
}

// Whether its rows tell tokens apart: not most of them are the same.
bool tells_rows_apart(const RowTable& table) {
  const Likeness alike(table, table);
  size_t same = 0;
  for (size_t i = 1; i < table.size(); ++i) same += alike(i - 1, i) ? 1 : 0;
  return 2 * same < table.size();
}

bool can_be_compared(const RowTable& golden, const RowTable& actual) {
  return !golden.empty() && !actual.empty() && golden[0].size() == actual[0].size() &&
         tells_rows_apart(golden) && tells_rows_apart(actual);
}

std::shared_ptr<const RowChoice> choice(size_t count, std::vector<uint32_t> rows,
                                        std::vector<uint32_t> last) {
  auto out = std::make_shared<RowChoice>();
  out->count = count;
  bool as_they_lie = rows.size() == count;
  for (size_t i = 0; i < rows.size(); ++i) as_they_lie &= rows[i] == i;
  if (as_they_lie) rows.clear();
  out->rows = std::move(rows);
  out->last = std::move(last);
  return out;
}

}  // namespace

std::optional<RowPair> find_rows(const RowsSide& golden, const RowsSide& actual,
                                 const std::vector<std::pair<uint32_t, uint32_t>>& sequences) {
  std::optional<Arrangement> masked = by_mask(golden, actual);
  if (!masked && (masked = by_mask(actual, golden))) masked->swap_sides();
  std::optional<Arrangement> found;
  for (const RowTable& g : golden.tables) {
    for (const RowTable& a : actual.tables) {
      if (!can_be_compared(g, a)) continue;
      const Likeness alike(g, a);
      if (sequences.empty() && agree_as_they_lie(g.size(), a.size(), alike)) return RowPair{};
      if (!found) found = arrangement_of(golden, actual, sequences, alike);
      if (masked && is_contradicted(*masked, alike)) masked.reset();
    }
  }
  if (!found) found = std::move(masked);
  if (!found) return std::nullopt;
  return RowPair{
      choice(golden.tokens.count, std::move(found->golden), std::move(found->golden_last)),
      choice(actual.tokens.count, std::move(found->actual), std::move(found->actual_last)),
      std::move(found->sequences)};
}

bool rows_agree(const RowTable& golden, const RowTable& actual) {
  return !golden.empty() && golden.size() == actual.size() &&
         agree_as_they_lie(golden.size(), actual.size(), Likeness(golden, actual));
}

size_t count_agreeing(const RowTable& golden, const RowTable& actual,
                      const std::vector<std::pair<uint32_t, uint32_t>>& rows) {
  const Likeness alike(golden, actual);
  return static_cast<size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const auto& row) { return alike(row.first, row.second); }));
}

std::vector<std::pair<uint32_t, uint32_t>> pair_rows(const RowTable& golden,
                                                     const RowTable& actual) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  if (golden.size() > kMostPairedRows || actual.size() > kMostPairedRows) return out;
  const Likeness alike(golden, actual);
  // [row]: the nearest of the other side, how far it is, and how far the next is.
  struct Nearest {
    size_t row = 0;
    double apart = 2;
    double next = 2;
    void look_at(size_t other, double distance) {
      if (distance < apart) {
        next = apart;
        apart = distance;
        row = other;
      } else {
        next = std::min(next, distance);
      }
    }
    bool is_clear() const { return apart <= kSameRow && next > 0 && apart <= kClearRow * next; }
  };
  std::vector<Nearest> of_golden(golden.size());
  std::vector<Nearest> of_actual(actual.size());
  for (size_t g = 0; g < golden.size(); ++g)
    for (size_t a = 0; a < actual.size(); ++a) {
      const double apart = alike.distance(g, a);
      of_golden[g].look_at(a, apart);
      of_actual[a].look_at(g, apart);
    }
  for (size_t g = 0; g < golden.size(); ++g)
    if (of_golden[g].is_clear() && of_actual[of_golden[g].row].is_clear() &&
        of_actual[of_golden[g].row].row == g)
      out.emplace_back(static_cast<uint32_t>(g), static_cast<uint32_t>(of_golden[g].row));
  return out;
}

}  // namespace ait::match
