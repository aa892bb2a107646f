// What locating needs to know of a row: its errors in three measures, what it was computed from, and
// which other rows play the same part. A hundred bytes, so that all rows of a token can be kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compare/row.h"

namespace ait::locate {

// Errors relative to golden: of the whole tensor, of its worst row and of its worst column. The last
// two see damage that the first would dilute.
enum class Measure : uint8_t { kWhole, kRow, kColumn };
const char* word(Measure measure);  // "row"
inline constexpr size_t kMeasures = 3;
using Errors = std::array<double, kMeasures>;

struct Value {
  uint64_t id = 0;                // of operation, tensor and rank: the same for all tokens
  uint64_t role = 0;              // the same for all layers; 0: it lies in none
  std::vector<uint32_t> sources;  // which values of the token went into it
  double passed_unit =
      0;  // rounding of what lies between these and it, and golden has nothing like
  bool has_origin = false;  // its sources are known
  bool is_copy = false;     // of its only source
  bool is_used = false;     // another value is computed from it
  capture::OpKind kind = capture::OpKind::kUnknown;
  bool is_leaf = false;  // computed by an operation, not between operations

  bool is_compared = false;  // otherwise its errors are those of what went into it
  bool is_identical = false;
  bool is_broken = false;      // NaN or infinite on one side only
  bool is_discrete = false;    // integers: choices, not quantities
  double share_differing = 0;  // of its rows, at most
  bool is_bound = false;       // only statistics were kept: the errors are at least so large
  double unit = 0;             // rounding of the coarser of the two types; 0 for exact ones
  Errors errors{};
  // What the whole error may become where an operation gives other weights to rows or columns: a
  // norm makes all rows count alike.
  double spread = 0;
  double usual = 0;          // error of the usual row
  double size = 0;           // root mean square of golden's
  bool has_padding = false;  // rows that do not count in the errors
  size_t rows = 1;
  size_t columns = 1;
  size_t column_rows = 0;  // that the error of columns was taken from

  // It may be computed from values of earlier tokens: by attention, which may lie between modules.
  bool reads_cache = false;
  double error(Measure measure) const { return errors[static_cast<size_t>(measure)]; }
};

// `place` is the number of the row among those of its token.
Value value_of(const compare::Row& row, size_t place);

// The relative error of rounding to a type, half a unit in the last place; 0 for integers.
double unit_of(DType dtype);

// Notes which values others are computed from, and which may be computed from a cache.
void note_uses(std::vector<Value>& values);

// Gives the values that were not compared, since golden has nothing like them, the errors of what
// went into them.
void pass_errors_on(std::vector<Value>& values);

// "0.0031", two digits.
std::string number_text(double value);
// "3.1" and "170": how many times.
std::string times_text(double ratio);

// "root.model.layers.#.mlp/output" of any layer; empty outside of layers.
std::string role_text(const match::Subject& subject);

}  // namespace ait::locate
