#include "metrics/profile.h"

#include <memory>
#include <tuple>
#include <utility>

#include "base/parallel.h"

namespace ait::metrics {
namespace {

// Sums of all rows are kept up to this number, 4 MiB for a pair. Of more the worst is found as they
// pass, and what is usual is known before from a look at some of them.
constexpr size_t kKeptRows = size_t{1} << 18;
// An error is taken of at least this part of what is usual, squared: a tenth.
constexpr double kRowFloor = 0.01;
constexpr double kColumnFloor = 1;
// A channel that is damaged is damaged in all rows, so that some tell: a quarter of them within
// these bounds, which is a small part of the work, and fewer where rows are long.
constexpr size_t kLeastColumnRows = 32;
constexpr size_t kMostColumnRows = 128;
constexpr size_t kColumnElements = size_t{1} << 20;
// Columns whose median is taken lie in groups like this, which are read at once.
constexpr size_t kGroupColumns = 32;
// Rows shorter than this are summed up element by element.
constexpr size_t kShortRow = 8;
// Squares of columns are added up in float32 lanes where the usual one is at least this: then what
// is lost is no error of such values.
constexpr double kSmallestColumn = 0x1p-60;

double quotient(double above, double below) { return above == 0 ? 0 : above / below; }

}  // namespace

Saturation::Saturation(DType dtype) {
  const auto integer = []<typename T>(T) {
    using Limits = std::numeric_limits<T>;
    return std::pair(Limits::is_signed ? static_cast<double>(Limits::min()) : -kInfinity,
                     static_cast<double>(Limits::max()));
  };
  const auto real = [](double largest) { return std::pair(-largest, largest); };
  const auto ends = [&]() -> std::pair<double, double> {
    switch (dtype) {
      case DType::kInt8:
        return integer(int8_t{});
      case DType::kUInt8:
        return integer(uint8_t{});
      case DType::kInt16:
        return integer(int16_t{});
      case DType::kUInt16:
        return integer(uint16_t{});
      case DType::kInt32:
        return integer(int32_t{});
      case DType::kUInt32:
        return integer(uint32_t{});
      case DType::kInt64:
        return integer(int64_t{});
      case DType::kUInt64:
        return integer(uint64_t{});
      case DType::kFloat16:
        return real(65504);
      case DType::kBFloat16:
        return real(0x1.fep127);
      case DType::kFloat32:
        return real(std::numeric_limits<float>::max());
      case DType::kFloat64:
        return real(std::numeric_limits<double>::max());
      case DType::kFloat8E4M3FN:
        return real(448);
      case DType::kFloat8E4M3FNUZ:
        return real(240);
      case DType::kFloat8E5M2:
      case DType::kFloat8E5M2FNUZ:
        return real(57344);
      case DType::kFloat8E8M0FNU:
        return real(0x1p127);
      case DType::kBool:  // has no end that a value could be pressed into
      case DType::kInt4Packed:
      case DType::kFloat4Packed:
      case DType::kComplex32:  // a Source hands out their parts
      case DType::kComplex64:
      case DType::kComplex128:
        break;
    }
    return real(kInfinity);
  };
  std::tie(low_, high_) = ends();
}

size_t Saturation::count(const double* values, size_t elements) const {
  size_t found = 0;
  for (size_t i = 0; i < elements; ++i) found += values[i] >= high_ || values[i] <= low_ ? 1 : 0;
  return found;
}

Profiler::Profiler(const Source& golden, const Source& actual, const Request& request)
    : golden_(golden),
      actual_(actual),
      threads_(request.threads),
      saturation_(actual.dtype()),
      fast_types_(has_fast_kernel(golden.dtype()) && has_fast_kernel(actual.dtype())),
      exact_differences_(needs_integer_differences(golden.dtype(), actual.dtype())),
      row_elements_(std::max<size_t>(golden.row_elements(), 1)),
      rows_(golden.elements() / row_elements_) {
  if (request.padding != nullptr && request.padding->size() == rows_) padding_ = request.padding;
}

void Profiler::start(const Scales& scales) {
  scales_ = scales;
  if (rows_ <= kKeptRows) {
    dd_.assign(rows_, 0);
    gg_.assign(rows_, RowSum().gg);
    return;
  }
  const auto buffers = std::make_unique<PairBuffers>();
  std::vector<double> dd;
  std::vector<double> gg;
  for (const size_t row : some_rows(kMedianSample)) {
    const RowSum sum = sum_of_row(row, *buffers);
    if (!sum.counts()) continue;
    dd.push_back(sum.dd);
    gg.push_back(sum.gg);
  }
  look_ = gg.empty() ? Spread() : spread_of(dd.data(), gg.data(), gg.size(), kRowFloor);
}

Doubles Profiler::widen(const void* g, const void* m, size_t count, PairBuffers& buffers) const {
  decode_f64(golden_.dtype(), g, count, buffers.golden);
  decode_f64(actual_.dtype(), m, count, buffers.actual);
  if (exact_differences_)
    integer_differences(golden_.dtype(), g, actual_.dtype(), m, count, buffers.difference);
  return in_doubles(buffers);
}

Doubles Profiler::in_doubles(const PairBuffers& buffers) const {
  return {buffers.golden, buffers.actual, exact_differences_ ? buffers.difference : nullptr};
}

RowSum Profiler::sum_of_row(size_t row, PairBuffers& buffers) const {
  RowSum whole;
  size_t flushed = 0;
  const size_t end = (row + 1) * row_elements_;
  for (size_t at = row * row_elements_; at < end; at += kBlockElements) {
    const size_t count = std::min(kBlockElements, end - at);
    const Doubles values = widen(golden_.block(at, count, buffers.golden_scratch),
                                 actual_.block(at, count, buffers.actual_scratch), count, buffers);
    RowSum part;
    row_sums_f64(values, 1, count, scales_, &part.dd, &part.gg, flushed);
    whole.add(part);
  }
  return whole;
}

void Profiler::finish_row(size_t row, const RowSum& sum, Part& part) {
  if (!sum.counts()) return;
  if (keeps_rows()) {
    dd_[row] = sum.dd;
    gg_[row] = sum.gg;
    return;
  }
  ++part.rows;
  part.dd += sum.dd;
  part.gg += sum.gg;
  part.worst.add(quotient(sum.dd, std::max(sum.gg, look_.least)), row);
}

void Profiler::set_cuts(size_t first, PairBuffers& buffers) const {
  buffers.rows.done = false;
  buffers.rows.first_elements = row_elements_ - first % row_elements_;
  buffers.rows.row_elements = row_elements_;
}

void Profiler::add_block(const void* g, const void* m, size_t first, size_t count,
                         size_t chunk_begin, const PairBlock& block, bool widened,
                         PairBuffers& buffers, Part& part) {
  const bool all_finite = block.compared == count;
  const bool fast = fast_types_ && all_finite && row_elements_ >= kShortRow;
  const bool saturates = saturation_.is_reached(block.actual);
  // pair_block_f32 has looked at every element: where one is 0 and should not be, the relative
  // error is 1, or golden counts as 0.
  const bool flushes =
      !buffers.rows.done || block.max_relative >= 1 || block.zero_golden_mismatch > 0;
  Doubles values = {};
  if (widened && all_finite) {
    values = in_doubles(buffers);
  } else if (!fast || saturates) {
    values = widen(g, m, count, buffers);
  }
  const auto sums = [&](size_t at, size_t rows, size_t elements, double* dd, double* gg) {
    const size_t offset = at - first;
    const auto* at_g = static_cast<const std::byte*>(g) + offset * size_bytes(golden_.dtype());
    const auto* at_m = static_cast<const std::byte*>(m) + offset * size_bytes(actual_.dtype());
    if (saturates) part.saturated += saturation_.count(values.actual + offset, rows * elements);
    if (!fast)
      return row_sums_f64(values.from(offset), rows, elements, scales_, dd, gg, part.flushed);
    if (flushes)
      part.flushed += count_flushed(golden_.dtype(), at_g, actual_.dtype(), at_m, rows * elements);
    if (!buffers.rows.done)
      return row_sums_f32(golden_.dtype(), at_g, actual_.dtype(), at_m, rows, elements, dd, gg);
    const size_t stretch = at / row_elements_ - first / row_elements_;
    std::copy_n(buffers.rows.dd + stretch, rows, dd);
    std::copy_n(buffers.rows.gg + stretch, rows, gg);
  };
  const size_t end = first + count;
  for (size_t at = first; at < end;) {
    const size_t row = at / row_elements_;
    const size_t row_end = (row + 1) * row_elements_;
    const size_t elements = std::min(end, row_end) - at;
    if (is_padding(row)) {
      at += elements;
    } else if (elements == row_elements_) {
      const size_t rows = rows_that_count(row, end / row_elements_);
      if (keeps_rows()) {
        sums(at, rows, elements, dd_.data() + row, gg_.data() + row);
      } else {
        sums(at, rows, elements, buffers.row_dd, buffers.row_gg);
        for (size_t k = 0; k < rows; ++k)
          finish_row(row + k, {buffers.row_dd[k], buffers.row_gg[k]}, part);
      }
      at += rows * elements;
    } else {
      RowSum sum;
      sums(at, 1, elements, &sum.dd, &sum.gg);
      part.open.add(sum);
      at += elements;
      if (at < row_end) continue;
      if (row * row_elements_ < chunk_begin) {
        part.head = part.open;
      } else {
        finish_row(row, part.open, part);
      }
      part.open = {};
    }
  }
}

// From `first` on, up to padding or `end`.
size_t Profiler::rows_that_count(size_t first, size_t end) const {
  if (padding_ == nullptr) return end - first;
  size_t row = first + 1;
  while (row < end && !is_padding(row)) ++row;
  return row - first;
}

Profiler::Part Profiler::merged(const std::vector<Part>& chunks, size_t chunk_elements) {
  Part all;
  RowSum open;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const Part& part = chunks[c];
    const size_t first = c * chunk_elements;
    const size_t end = std::min(golden_.elements(), first + chunk_elements);
    const size_t row = first / row_elements_;
    if (first % row_elements_ == 0) {
      open = part.open;
    } else if ((row + 1) * row_elements_ > end) {
      open.add(part.open);
    } else {
      open.add(part.head);
      finish_row(row, open, all);
      open = part.open;
    }
    all.saturated += part.saturated;
    all.flushed += part.flushed;
    all.rows += part.rows;
    all.dd += part.dd;
    all.gg += part.gg;
    all.worst.add(part.worst.error, part.worst.index);
  }
  return all;
}

// Leaves out the rows that do not count, and says which are left where that is not all of them.
std::vector<size_t> Profiler::drop_uncounted(Part& all) {
  all.rows = static_cast<size_t>(
      std::count_if(gg_.begin(), gg_.end(), [](double gg) { return !std::isnan(gg); }));
  if (all.rows == rows_) return {};
  std::vector<size_t> counting;
  for (size_t row = 0; row < rows_; ++row) {
    if (std::isnan(gg_[row])) continue;
    all.dd += dd_[row];
    all.gg += gg_[row];
    dd_[counting.size()] = dd_[row];
    gg_[counting.size()] = gg_[row];
    counting.push_back(row);
  }
  return counting;
}

std::vector<size_t> Profiler::some_rows(size_t wanted) const {
  std::vector<size_t> rows;
  for (size_t i = 0; i < std::min(wanted, rows_); ++i) {
    const size_t row = spread_index(i, wanted, rows_);
    if (!is_padding(row)) rows.push_back(row);
  }
  return rows;
}

ErrorProfile Profiler::finish(const std::vector<Part>& chunks, size_t chunk_elements,
                              const Whole& whole) {
  Part all = merged(chunks, chunk_elements);
  std::vector<size_t> counting;
  if (keeps_rows()) counting = drop_uncounted(all);
  ErrorProfile out;
  out.saturated = all.saturated;
  out.flushed = all.flushed;
  out.rows = all.rows;
  if (all.rows == 0) return out;

  out.error =
      all.rows == rows_ ? root(quotient(whole.dd, whole.gg)) : root(quotient(all.dd, all.gg));
  const size_t wanted = std::min(std::clamp(all.rows / 4, kLeastColumnRows, kMostColumnRows),
                                 std::max<size_t>(1, kColumnElements / row_elements_));
  std::vector<size_t> column_rows;
  column_rows.reserve(wanted);
  if (keeps_rows()) {
    const Spread spread = spread_of(dd_.data(), gg_.data(), all.rows, kRowFloor);
    const Worst worst = worst_of(dd_.data(), gg_.data(), all.rows, spread.least);
    out.worst_row = counting.empty() ? worst.index : counting[worst.index];
    out.worst_row_error = root(worst.error);
    out.usual_row_error = root(spread.usual);
    for (size_t i = 0; i < std::min(wanted, all.rows); ++i) {
      const size_t place = spread_index(i, wanted, all.rows);
      column_rows.push_back(counting.empty() ? place : counting[place]);
    }
  } else {
    out.worst_row = all.worst.index;
    out.worst_row_error = root(all.worst.error);
    out.usual_row_error = root(look_.usual);
    column_rows = some_rows(wanted);
  }
  if (column_rows.empty()) return out;
  const bool fast = fast_types_ && whole.all_finite && whole.largest_golden <= kMaxColumnValue &&
                    whole.largest_difference <= kMaxColumnValue;
  if (!fast || !set_columns(column_rows, true, out)) set_columns(column_rows, false, out);
  return out;
}

double Profiler::root(double squared) const {
  return std::sqrt(squared) * (scales_.golden / scales_.difference);
}

// False where the columns are too small for float32 lanes.
bool Profiler::set_columns(const std::vector<size_t>& rows, bool fast, ErrorProfile& out) const {
  // What is usual: of all columns, or of some groups of them.
  constexpr size_t kGroups = kMedianSample / kGroupColumns;
  const bool is_narrow = row_elements_ <= kMedianSample;
  double dd[kMedianSample + kStripRoom] = {};
  double gg[kMedianSample + kStripRoom] = {};
  if (is_narrow) {
    add_columns(rows, 0, row_elements_, fast, dd, gg);
  } else {
    for (size_t group = 0; group < kGroups; ++group) {
      const size_t place = spread_index(group, kGroups, row_elements_ / kGroupColumns);
      add_columns(rows, place * kGroupColumns, kGroupColumns, fast, dd + group * kGroupColumns,
                  gg + group * kGroupColumns);
    }
  }
  const Spread spread = spread_of(dd, gg, std::min(row_elements_, kMedianSample), kColumnFloor);
  if (fast && spread.usual_golden < kSmallestColumn) return false;
  const Worst worst = is_narrow ? worst_of(dd, gg, row_elements_, spread.least)
                                : worst_column(rows, fast, spread.least);
  out.columns = row_elements_;
  out.column_rows = rows.size();
  out.worst_column = worst.index;
  out.worst_column_error = root(worst.error);
  out.usual_column_error = root(spread.usual);
  return true;
}

Worst Profiler::worst_column(const std::vector<size_t>& rows, bool fast, double least) const {
  std::vector<Worst> strips((row_elements_ + kStripColumns - 1) / kStripColumns);
  parallel_for(strips.size(), threads_, [&](size_t strip) {
    const size_t first = strip * kStripColumns;
    const size_t columns = std::min(kStripColumns, row_elements_ - first);
    double dd[kStripColumns + kStripRoom] = {};
    double gg[kStripColumns + kStripRoom] = {};
    add_columns(rows, first, columns, fast, dd, gg);
    strips[strip] = worst_of(dd, gg, columns, least);
  });
  Worst worst;
  for (size_t strip = 0; strip < strips.size(); ++strip)
    worst.add(strips[strip].error, strip * kStripColumns + strips[strip].index);
  return worst;
}

void Profiler::add_columns(const std::vector<size_t>& rows, size_t first, size_t columns, bool fast,
                           double* dd, double* gg) const {
  PairBuffers buffers;
  const void* golden[kMostColumnRows];
  const void* actual[kMostColumnRows];
  size_t waiting = 0;
  const auto add_waiting = [&] {
    column_sums_f32(golden_.dtype(), golden, actual_.dtype(), actual, waiting, columns, dd, gg);
    waiting = 0;
  };
  const bool at_once = golden_.plain() && actual_.plain();
  for (const size_t row : rows) {
    const size_t at = row * row_elements_ + first;
    const void* g = golden_.block(at, columns, buffers.golden_scratch);
    const void* m = actual_.block(at, columns, buffers.actual_scratch);
    if (fast) {
      golden[waiting] = g;
      actual[waiting++] = m;
      if (!at_once) add_waiting();
    } else {
      column_sums_f64(widen(g, m, columns, buffers), columns, scales_, dd, gg);
    }
  }
  if (waiting > 0) add_waiting();
}

}  // namespace ait::metrics
