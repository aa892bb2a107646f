// What the data of two segments in one round say about who corresponds to whom.
//
//   Evidence evidence = weigh(golden, actual);
//   const auto& whole = evidence.at(g, a).whole;          // values g of golden and a of my side
//   if (whole && whole->distance.agrees()) …              // may be the same tensor
//
// Evidence decides nothing. Segments of the same structure have the same values, so what several
// layers and rounds say is added up in segment_match.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "match/forms.h"
#include "match/sample.h"
#include "match/values.h"

namespace ait::match {

// A segment in one round.
struct SegmentRound {
  SegmentSide side;
  Tokens tokens;
  // In which round an operation ran; nothing where it did not.
  std::function<std::optional<size_t>(uint32_t operation)> round_of;
};

// Which of `columns` things each of `rows` things is held against. All of them, unless that is more
// than `most` in all: then those that stand about where it does among its own.
struct Band {
  size_t rows = 0;
  size_t columns = 0;
  size_t width = 0;  // columns for each row

  Band(size_t row_count, size_t column_count, size_t most)
      : rows(row_count), columns(column_count), width(column_count) {
    if (columns > 0 && rows > most / columns) width = std::max<size_t>(most / rows, 1);
  }

  size_t cells() const { return rows * width; }
  bool is_whole() const { return width == columns; }
  size_t first(size_t row) const {
    const size_t middle = row * columns / rows;
    return std::min(middle - std::min(middle, width / 2), columns - width);
  }
  // Where in a list of cells a pair is; nothing for one that is not held against each other.
  std::optional<size_t> cell(size_t row, size_t column) const {
    const size_t place = column - first(row);  // wraps around where it is before the first
    if (place >= width) return std::nullopt;
    return row * width + place;
  }
};

struct Evidence {
  // What is known of one value; see Readings.
  struct ValueFacts {
    uint64_t content = 0;
    size_t columns = 0;
    bool is_float = true;
    bool is_same = false;           // on all of several ranks
    std::optional<float> constant;  // what all elements are
  };
  // How near two values are.
  struct PairFacts {
    std::optional<Form> whole;  // tensor against tensor, in whatever shards
    std::optional<Form> part;   // one is a stretch of columns of the other
  };
  // Two golden values that add up to one of my side's.
  struct Sum {
    uint32_t first;
    uint32_t second;
    uint32_t actual;
    Form form;
  };

  // Which values of one side are the same but for rounding.
  struct Kin {
    Band band;
    std::vector<uint8_t> cells;

    explicit Kin(size_t values) : band(values, values, kMostPairs), cells(band.cells()) {}
    bool are(size_t a, size_t b) const { return is(a, b) || is(b, a); }

   private:
    bool is(size_t a, size_t b) const {
      const auto cell = band.cell(a, b);
      return cell && cells[*cell] != 0;
    }
  };

  // A segment has a hundred values. In a run whose layers are not found it has as many as the run,
  // and of thousands not each can be held against each: a pair takes 200 bytes and microseconds.
  static constexpr size_t kMostPairs = size_t{1} << 19;

  Evidence(size_t golden_values, size_t actual_values)
      : golden(golden_values),
        actual(actual_values),
        band(golden_values, actual_values, kMostPairs),
        pairs(band.cells()),
        golden_kin(golden_values),
        actual_kin(actual_values) {}

  std::optional<size_t> layer;  // which of the segments it is of
  std::vector<ValueFacts> golden;
  std::vector<ValueFacts> actual;
  Band band;                     // golden values and mine
  std::vector<PairFacts> pairs;  // its cells
  Kin golden_kin;
  Kin actual_kin;
  std::vector<Sum> sums;
  bool has_all_sums = true;

  // Nothing is known of two values that were not held against each other.
  const PairFacts& at(size_t golden_value, size_t actual_value) const {
    static const PairFacts nothing;
    const auto cell = band.cell(golden_value, actual_value);
    return cell ? pairs[*cell] : nothing;
  }
  bool is_whole() const {
    return band.is_whole() && golden_kin.band.is_whole() && actual_kin.band.is_whole() &&
           has_all_sums;
  }
};

// Reads samples of both sides on all cores and holds them against each other.
Evidence weigh(const SegmentRound& golden, const SegmentRound& actual);

// What is known of the values of one side alone.
std::vector<Evidence::ValueFacts> facts_of(const SegmentRound& from);

// Shapes of the values of one side, those that can be read.
std::vector<Shape> shapes_of(const SegmentRound& from);

}  // namespace ait::match
