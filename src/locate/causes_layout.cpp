// Elements that are right and stand at the wrong place. Such hypotheses are maps from a place of my
// value to the place of golden's that stands there; they are tried on some places, of which a few
// rule out most maps.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "locate/cause_families.h"
#include "metrics/elements.h"

namespace ait::locate {
namespace {

constexpr size_t kPlaces = 1024;
constexpr size_t kPlaceRows = 64;
constexpr size_t kFirstPlaces = 48;    // that rule out most maps
constexpr double kHopeless = 0.7;      // of the error is left after the first places
constexpr size_t kFewestPlaces = 8;    // agree by chance too easily
constexpr size_t kMostDimensions = 4;  // of a permutation: 24 of them
constexpr int64_t kNearShift = 8;      // tokens
constexpr size_t kMatchedRows = 1024;  // of golden that a row of mine is looked for among
constexpr size_t kMostBlocks = 128;
constexpr size_t kFewestBlockColumns = 4;
constexpr size_t kBlockEvidence = 16;  // elements of a block over all rows
constexpr size_t kLargestHead = 256;

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

// Places of my value within the part that is hit.
class Places {
 public:
  explicit Places(const Evidence& evidence) : evidence_(evidence) {
    const std::vector<size_t>& sample = evidence.sample();
    const std::vector<size_t>& columns = evidence.hit_columns();
    const size_t rows = std::min(sample.size(), kPlaceRows);
    const size_t each = std::min(columns.size(), kPlaces / rows);
    uint64_t state = 0x9e3779b97f4a7c15;
    // Row after row, so that the first places are from all rows.
    for (size_t k = 0; k < each; ++k)
      for (size_t r = 0; r < rows; ++r) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const size_t i = r * sample.size() / rows;
        const size_t c =
            each == columns.size() ? columns[k] : columns[(state >> 33) % columns.size()];
        places_.push_back(
            {sample[i] * evidence.columns() + c, evidence.actual()[i][c], evidence.golden()[i][c]});
      }
  }

  // How well my value is golden's at source(place of mine), where that is not kNowhere.
  template <typename Map>
  Fit fit(const Map& source) const {
    double error = 0;
    double left = 0;
    double norm = 0;
    size_t used = 0;
    const TensorView view = evidence_.fault().golden.view();
    for (const Place& place : places_) {
      const size_t from = source(place.index);
      if (from == kNowhere) continue;
      double value = 0;
      metrics::read_elements(view, from, 1, &value);
      error += (place.actual - place.golden) * (place.actual - place.golden);
      left += (place.actual - value) * (place.actual - value);
      norm += place.golden * place.golden;
      if (++used == kFirstPlaces && !(left <= kHopeless * kHopeless * error)) break;
    }
    if (used < kFewestPlaces || !(norm > 0)) return {0, 1};
    return {std::sqrt(error / norm), std::sqrt(left / norm)};
  }

 private:
  struct Place {
    size_t index;
    double actual;
    double golden;
  };
  const Evidence& evidence_;
  std::vector<Place> places_;
};

// The best of several hypotheses of one name.
struct Best {
  Fit fit{0, 1};
  std::string name;
  std::string what;

  void offer(const Evidence& evidence, const Fit& other, std::string_view its_name,
             const std::string& its_what) {
    if (!evidence.explains(other) || (!name.empty() && other.residual >= fit.residual)) return;
    fit = other;
    name = its_name;
    what = its_what;
  }
  void add(const Evidence& evidence, Candidates& out) const {
    if (!name.empty()) evidence.add(out, Proof::kRelation, name, what, fit);
  }
};

// My elements, in their order, are golden's with the axes `dims` in the order `axes`.
struct AxisMap {
  std::vector<size_t> dims;     // in my order
  std::vector<size_t> strides;  // of golden, in my order

  AxisMap(const std::vector<size_t>& golden_dims, const std::vector<size_t>& axes) {
    std::vector<size_t> golden_strides(golden_dims.size(), 1);
    for (size_t k = golden_dims.size() - 1; k-- > 0;)
      golden_strides[k] = golden_strides[k + 1] * golden_dims[k + 1];
    for (const size_t axis : axes) {
      dims.push_back(golden_dims[axis]);
      strides.push_back(golden_strides[axis]);
    }
  }
  size_t operator()(size_t place) const {
    size_t out = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      out += place % dims[k] * strides[k];
      place /= dims[k];
    }
    return out;
  }
};

void try_axes(const Evidence& evidence, const Places& places, const std::vector<size_t>& dims,
              bool last_is_split, Best& best) {
  if (dims.size() < 2 || dims.size() > kMostDimensions) return;
  std::vector<size_t> axes(dims.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  while (std::ranges::next_permutation(axes).found) {
    size_t moved = 0;
    for (size_t k = 0; k < axes.size(); ++k) moved += axes[k] != k ? 1 : 0;
    const bool within_rows = last_is_split && moved == 2 && axes.back() == axes.size() - 2;
    const bool of_halves = within_rows && (dims.back() == 2 || dims[dims.size() - 2] == 2);
    const std::string what =
        of_halves ? "taking columns in turn from two halves instead of one half after the other"
                  : fmt::format("reading its axes [{}] in the order [{}]", fmt::join(dims, ", "),
                                fmt::join(axes, ", "));
    best.offer(evidence, places.fit(AxisMap(dims, axes)),
               of_halves    ? "fused-order"
               : moved == 2 ? "transposed"
                            : "permuted-axes",
               what);
  }
}

void axis_causes(const Evidence& evidence, const Places& places, Candidates& out) {
  Best best;
  std::vector<size_t> dims;
  for (const int64_t size : evidence.fault().golden.shape())
    if (size > 1) dims.push_back(static_cast<size_t>(size));
  if (dims.empty()) return;
  try_axes(evidence, places, dims, false, best);
  const size_t columns = dims.back();
  for (const size_t size : divisors(columns)) {
    if (size == 1 || size == columns) continue;
    std::vector<size_t> split = dims;
    split.back() = columns / size;
    split.push_back(size);
    try_axes(evidence, places, split, true, best);
  }
  best.add(evidence, out);
}

// Heads in which halves stand where neighbours are meant to, or the other way round.
void pairing_causes(const Evidence& evidence, const Places& places, Candidates& out) {
  Best best;
  const size_t columns = evidence.columns();
  for (const size_t head : divisors(columns)) {
    if (head % 2 != 0 || head < kFewestBlockColumns || head > kLargestHead || head == columns)
      continue;
    const size_t half = head / 2;
    const auto moved = [&](size_t place, bool to_neighbours) {
      const size_t in_head = place % columns % head;
      const size_t from =
          to_neighbours ? in_head % 2 * half + in_head / 2 : in_head % half * 2 + in_head / half;
      return place - in_head + from;
    };
    for (const bool to_neighbours : {false, true})
      best.offer(evidence, places.fit([&](size_t place) { return moved(place, to_neighbours); }),
                 "rope-pairing",
                 fmt::format("moving pairs {} in heads of {}",
                             to_neighbours ? "from half a head apart next to each other"
                                           : "from next to each other half a head apart",
                             head));
  }
  best.add(evidence, out);
}

// A table of angles, of which each row belongs to a position.
bool is_table(const Evidence& evidence) {
  if (!type_has(evidence.fault(), "rotary") && !type_has(evidence.fault(), "rope") &&
      !type_has(evidence.fault(), "cos") && !type_has(evidence.fault(), "sin"))
    return false;
  constexpr double kLargest = 1.5;  // tables of some models are scaled a little
  return std::ranges::all_of(evidence.golden().values,
                             [](double value) { return std::abs(value) <= kLargest; });
}

// For rows of my value, the row of golden's that it is; empty where that is not looked for.
std::vector<size_t> matched_rows(const Evidence& evidence, const std::vector<size_t>& looked_for) {
  constexpr size_t kProbes = 32;
  const size_t rows = evidence.row_count();
  const size_t columns = evidence.columns();
  if (rows > kMatchedRows || rows < 2) return {};
  std::vector<size_t> probes;
  const std::vector<size_t>& hit = evidence.hit_columns();
  for (size_t k = 0; k < std::min(kProbes, hit.size()); ++k)
    probes.push_back(hit[k * hit.size() / std::min(kProbes, hit.size())]);
  std::vector<double> golden(rows * probes.size());
  const TensorView view = evidence.fault().golden.view();
  for (size_t row = 0; row < rows; ++row)
    for (size_t k = 0; k < probes.size(); ++k)
      metrics::read_elements(view, row * columns + probes[k], 1, &golden[row * probes.size() + k]);
  std::vector<size_t> out;
  for (const size_t i : looked_for) {
    double least = std::numeric_limits<double>::infinity();
    size_t match = 0;
    for (size_t row = 0; row < rows; ++row) {
      double distance = 0;
      for (size_t k = 0; k < probes.size(); ++k) {
        const double d = evidence.actual()[i][probes[k]] - golden[row * probes.size() + k];
        distance += d * d;
      }
      if (distance < least) {
        least = distance;
        match = row;
      }
    }
    out.push_back(match);
  }
  return out;
}

// Rows of [tokens, heads, size] are heads, of [batch, tokens, size] they are tokens.
bool rows_may_be_heads(const Shape& shape) {
  const size_t rank = shape.size();
  return (rank > 3 || (rank == 3 && shape[0] != 1)) &&
         shape[rank - 2] <= static_cast<int64_t>(kMostBlocks) &&
         shape[rank - 1] <= static_cast<int64_t>(kLargestHead);
}

void row_causes(const Evidence& evidence, const Places& places, Candidates& out) {
  const Shape& shape = evidence.fault().golden.shape();
  const size_t columns = evidence.columns();
  const size_t rows = evidence.row_count();
  if (shape.size() < 2 || rows < 2) return;
  const auto length = static_cast<size_t>(shape[shape.size() - 2]);
  const std::string name = is_table(evidence) ? "position" : "token-shift";
  const auto shifted = [&](int64_t shift) {
    return places.fit([&, shift](size_t place) {
      const int64_t row = static_cast<int64_t>(place / columns % length) + shift;
      if (row < 0 || row >= static_cast<int64_t>(length)) return kNowhere;
      return static_cast<size_t>(static_cast<int64_t>(place) +
                                 shift * static_cast<int64_t>(columns));
    });
  };
  const auto what = [](int64_t shift) {
    return fmt::format("taking the row {} {} {}", std::abs(shift),
                       std::abs(shift) == 1 ? "token" : "tokens", shift < 0 ? "earlier" : "later");
  };
  Best best;
  for (int64_t shift = -kNearShift; shift <= kNearShift; ++shift)
    if (shift != 0) best.offer(evidence, shifted(shift), name, what(shift));
  if (!best.name.empty()) {
    best.add(evidence, out);
    // Positions are embedded like words.
    if (evidence.fault().kind == capture::OpKind::kEmbedding)
      evidence.add(out, Proof::kRelation, "position", best.what, best.fit);
    if (rows_may_be_heads(shape))
      evidence.add(out, Proof::kRelation, "heads-order", "moving its heads", best.fit);
    return;
  }

  constexpr size_t kLookedFor = 16;
  std::vector<size_t> looked_for;
  const size_t count = std::min(kLookedFor, evidence.sample().size());
  looked_for.reserve(count);
  for (size_t k = 0; k < count; ++k) looked_for.push_back(k * evidence.sample().size() / count);
  const std::vector<size_t> matches = matched_rows(evidence, looked_for);
  if (matches.empty()) return;
  // The same distance everywhere is a shift; other orders are shown by the rows themselves.
  double error = 0;
  double left = 0;
  double norm = 0;
  bool is_shift = true;
  bool is_one_row = true;
  std::vector<double> row(columns);
  const auto first = static_cast<int64_t>(evidence.sample()[looked_for[0]]);
  const int64_t distance = static_cast<int64_t>(matches[0]) - first;
  for (size_t k = 0; k < matches.size(); ++k) {
    const size_t i = looked_for[k];
    metrics::read_elements(evidence.fault().golden.view(), matches[k] * columns, columns, row);
    for (const size_t c : evidence.hit_columns()) {
      const double m = evidence.actual()[i][c];
      const double g = evidence.golden()[i][c];
      error += (m - g) * (m - g);
      left += (m - row[c]) * (m - row[c]);
      norm += g * g;
    }
    is_shift &=
        static_cast<int64_t>(matches[k]) - static_cast<int64_t>(evidence.sample()[i]) == distance;
    is_one_row &= matches[k] == matches[0];
  }
  if (!(norm > 0) || evidence.hit_columns().size() < kFewestPlaces) return;
  const Fit fit{std::sqrt(error / norm), std::sqrt(left / norm)};
  if (!evidence.explains(fit)) return;
  if (is_shift) return evidence.add(out, Proof::kRelation, name, what(distance), fit);
  const std::string order =
      is_one_row ? fmt::format("taking its row {} everywhere", matches[0])
                 : fmt::format("putting its rows in another order (row {} is golden's {})",
                               evidence.sample()[looked_for.back()], matches.back());
  evidence.add(out, Proof::kRelation, "token-order", order, fit);
  if (rows_may_be_heads(shape)) evidence.add(out, Proof::kRelation, "heads-order", order, fit);
}

// A value of one token for each sequence that is golden's of a token before.
void earlier_causes(const Evidence& evidence, Candidates& out) {
  constexpr size_t kLookedBack = 8;
  const std::vector<Tensor>& earlier = evidence.fault().golden_earlier;
  const size_t columns = evidence.columns();
  std::vector<double> row(columns);
  for (size_t back = 1; back <= std::min(kLookedBack, earlier.size()); ++back) {
    const Tensor& then = earlier[earlier.size() - back];
    const size_t rows = evidence.row_count();
    if (!is_real(then.dtype()) || then.elements() % (rows * columns) != 0) continue;
    const size_t tokens = then.elements() / (rows * columns);
    if (tokens == 0) continue;
    Rows last{columns, {}};
    for (const size_t at : evidence.sample()) {
      metrics::read_elements(then.view(), (at * tokens + tokens - 1) * columns, columns, row);
      last.values.insert(last.values.end(), row.begin(), row.end());
    }
    const Fit fit = evidence.fit([&](size_t i, size_t c) { return last[i][c]; });
    if (evidence.hit_columns().size() < kFewestPlaces || !evidence.explains(fit)) continue;
    return evidence.add(
        out, Proof::kRelation, is_table(evidence) ? "position" : "stale-cache",
        fmt::format("taking what it was {} {} before", back, back == 1 ? "token" : "tokens"), fit);
  }
}

// For each block of columns of my value the block of golden's that stands there; nothing where most
// of the error is left.
std::optional<std::vector<size_t>> matched_blocks(const Evidence& evidence, size_t size) {
  constexpr size_t kRows = 8;
  constexpr size_t kOffsets = 8;
  const size_t blocks = evidence.columns() / size;
  const size_t rows = std::min(kRows, evidence.sample().size());
  const size_t offsets = std::min(kOffsets, size);
  const auto values = [&](const Rows& of) {  // some of each block, one block after the other
    std::vector<double> out;
    for (size_t block = 0; block < blocks; ++block)
      for (size_t r = 0; r < rows; ++r)
        for (size_t k = 0; k < offsets; ++k)
          out.push_back(of[r * evidence.sample().size() / rows][block * size + k * size / offsets]);
    return out;
  };
  const std::vector<double> mine = values(evidence.actual());
  const std::vector<double> golden = values(evidence.golden());
  const size_t each = rows * offsets;
  const auto distance = [&](size_t block, size_t other, double bound) {
    double sum = 0;
    for (size_t k = 0; k < each && sum < bound; ++k) {
      const double d = mine[block * each + k] - golden[other * each + k];
      sum += d * d;
    }
    return sum;
  };
  std::vector<size_t> out(blocks);
  double error = 0;
  double left = 0;
  for (size_t block = 0; block < blocks; ++block) {
    double least = distance(block, block, std::numeric_limits<double>::infinity());
    error += least;
    out[block] = block;
    for (size_t other = 0; other < blocks; ++other)
      if (const double d = distance(block, other, least); d < least) {
        least = d;
        out[block] = other;
      }
    left += least;
  }
  if (left > kHopeless * kHopeless * error) return std::nullopt;
  return out;
}

// How the blocks stand: the name of the mistake and what was done.
std::pair<std::string, std::string> order_text(const std::vector<size_t>& order, size_t size) {
  const size_t blocks = order.size();
  size_t runs = 1;
  for (size_t k = 1; k < blocks; ++k) runs += order[k] != order[k - 1] + 1 ? 1 : 0;
  bool is_rotation = true;
  for (size_t k = 0; k < blocks; ++k) is_rotation &= order[k] == (order[0] + k) % blocks;
  if (blocks > 3 && is_rotation)
    return {"heads-order", fmt::format("moving its {} stretches of {} columns by {}", blocks, size,
                                       (blocks - order[0]) % blocks)};
  for (const size_t groups : divisors(blocks)) {
    if (groups == 1 || groups == blocks) continue;
    bool is_tiled = true;
    for (size_t k = 0; k < blocks; ++k)
      is_tiled &= order[k] == k % groups * (blocks / groups) + k / groups;
    if (is_tiled)
      return {"heads-order", fmt::format("taking its {} heads of {} columns in turn from {} groups",
                                         blocks, size, groups)};
  }
  if (blocks <= 3 || (runs <= 5 && size * 8 > kLargestHead && blocks <= 8))
    return {"fused-order", fmt::format("putting its stretches of {} columns in the order {}", size,
                                       fmt::join(order, " "))};
  constexpr size_t kNamed = 8;
  return {"heads-order",
          fmt::format(
              "putting its stretches of {} columns in the order {}{}", size,
              fmt::join(order.begin(),
                        order.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, blocks)), " "),
              blocks > kNamed ? " …" : "")};
}

void block_causes(const Evidence& evidence, Candidates& out) {
  for (const size_t size : divisors(evidence.columns())) {
    const size_t blocks = evidence.columns() / size;
    if (blocks < 2) continue;
    if (blocks > kMostBlocks || size < kFewestBlockColumns) return;
    if (size * evidence.sample().size() < kBlockEvidence) return;
    const auto matched = matched_blocks(evidence, size);
    if (!matched) continue;
    const std::vector<size_t>& order = *matched;
    const Fit fit = evidence.fit([&](size_t i, size_t c) {
      return evidence.golden()[i][order[c / size] * size + c % size];
    });
    if (!evidence.explains(fit)) continue;
    const auto [name, what] = order_text(order, size);
    evidence.add(out, Proof::kRelation, name, what, fit);
    // Two or three stretches of a head's size may be heads or what was fused.
    if (name == "fused-order" && size <= kLargestHead)
      evidence.add(out, Proof::kRelation, "heads-order", what, fit);
    return;
  }
}

}  // namespace

void layout_causes(const Evidence& evidence, Candidates& out) {
  const Places places(evidence);
  axis_causes(evidence, places, out);
  pairing_causes(evidence, places, out);
  row_causes(evidence, places, out);
  earlier_causes(evidence, out);
  block_causes(evidence, out);
}

}  // namespace ait::locate
