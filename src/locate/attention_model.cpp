#include "locate/attention_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "locate/evidence.h"
#include "metrics/elements.h"

namespace ait::locate {

std::vector<TokenForm> forms_of(const Shape& shape) {
  const auto at = [&](size_t k) { return static_cast<size_t>(shape[k]); };
  switch (shape.size()) {
    case 2:
      return {{1, at(0), at(1), false}};
    case 3:
      if (at(0) == 1) return {{1, at(1), at(2), false}};
      return {{1, at(0), at(1) * at(2), false}, {at(0), at(1), at(2), false}};
    case 4:
      return {{at(0), at(1), at(2) * at(3), false}, {at(0), at(2), at(1) * at(3), true}};
    default:
      return {};
  }
}

std::optional<TokenTable::Part> TokenTable::part_of(const Tensor& golden, const Tensor& actual,
                                                    size_t sequences, size_t tokens, size_t width) {
  if (!is_real(golden.dtype()) || !is_real(actual.dtype())) return std::nullopt;
  if (golden.elements() == 0 || golden.elements() != actual.elements()) return std::nullopt;
  const Shape& shape = golden.shape();
  Part part{&golden, &actual, tokens, sequences, 0};
  // [batch, heads, tokens, size] says how many tokens it has; of [batch, tokens, heads, size] the
  // tokens are where they are expected.
  if (shape.size() == 4 && static_cast<size_t>(shape[1]) != tokens) {
    part.heads = static_cast<size_t>(shape[1]);
    part.tokens = static_cast<size_t>(shape[2]);
    part.sequences = static_cast<size_t>(shape[0]);
    if (tokens != 0 && part.tokens < tokens) return std::nullopt;
  } else if (tokens == 0) {  // an earlier call: as many as the width tells
    if (width == 0 || golden.elements() % (width * sequences) != 0) return std::nullopt;
    part.tokens = golden.elements() / (width * sequences);
  } else if (golden.elements() % (sequences * tokens) != 0 ||
             (shape.size() >= 2 &&
              static_cast<size_t>(shape.back()) * sequences * tokens > golden.elements())) {
    part.sequences = 1;  // a table for all sequences
  }
  if (part.sequences != sequences && part.sequences != 1) return std::nullopt;
  if (golden.elements() % (part.sequences * part.tokens) != 0) return std::nullopt;
  return part;
}

std::optional<TokenTable> TokenTable::make(const CauseInput& input, size_t sequences,
                                           size_t tokens) {
  TokenTable out;
  out.input_ = &input;
  out.tokens_ = tokens;
  const auto last = part_of(input.golden, input.actual, sequences, tokens, 0);
  if (!last) return std::nullopt;
  out.width_ = input.golden.elements() / (last->sequences * last->tokens);
  out.earlier_ = last->tokens - tokens;
  if (input.golden_earlier.size() == input.actual_earlier.size() && out.earlier_ == 0)
    for (size_t k = 0; k < input.golden_earlier.size(); ++k) {
      const auto part =
          part_of(input.golden_earlier[k], input.actual_earlier[k], last->sequences, 0, out.width_);
      if (!part) return std::nullopt;
      out.earlier_ += part->tokens;
      out.parts_.push_back(*part);
    }
  out.parts_.push_back(*last);
  return out;
}

void TokenTable::read(SideOf side, size_t sequence, size_t token, size_t first, size_t count,
                      double* out) const {
  for (const Part& part : parts_) {
    if (token >= part.tokens) {
      token -= part.tokens;
      continue;
    }
    const Tensor& tensor = side == SideOf::kGolden ? *part.golden : *part.actual;
    const size_t s = part.sequences == 1 ? 0 : sequence;
    if (part.heads == 0)
      return metrics::read_elements(tensor.view(), (s * part.tokens + token) * width_ + first,
                                    count, out);
    const size_t size = width_ / part.heads;
    for (size_t k = 0; k < count;) {  // from head to head
      const size_t head = (first + k) / size;
      const size_t within = (first + k) % size;
      const size_t run = std::min(count - k, size - within);
      metrics::read_elements(tensor.view(),
                             ((s * part.heads + head) * part.tokens + token) * size + within, run,
                             out + k);
      k += run;
    }
    return;
  }
  std::fill_n(out, count, 0.0);
}

std::optional<Angles> angle_tables(const std::vector<const TokenTable*>& tables, size_t tokens) {
  constexpr double kClose = 0.02;  // bfloat16
  constexpr size_t kWidest = 512;
  constexpr size_t kTokens = 8;
  for (const TokenTable* a : tables)
    for (const TokenTable* b : tables) {
      if (a == b || a->width() != b->width() || a->width() > kWidest) continue;
      const size_t width = a->width();
      std::vector<double> c(width);
      std::vector<double> s(width);
      double square = 0;
      double slow_c = 0;
      double slow_s = 0;
      bool is_angle = true;
      // Each angle may stand there twice: as neighbours or half a row apart.
      bool neighbours = width >= 4 && width % 2 == 0;
      bool halves = neighbours;
      for (size_t t = 0; t < std::min(tokens, kTokens); ++t) {
        a->read(SideOf::kGolden, 0, a->earlier() + t, 0, width, c.data());
        b->read(SideOf::kGolden, 0, b->earlier() + t, 0, width, s.data());
        for (size_t k = 0; k < width; ++k) {
          const double sum = c[k] * c[k] + s[k] * s[k];
          if (square == 0) square = sum;
          is_angle &= std::abs(sum - square) <= kClose * square;
        }
        for (size_t k = 0; k < width / 2; ++k) {
          neighbours &= c[2 * k] == c[2 * k + 1];
          halves &= c[k] == c[k + width / 2];
        }
        slow_c += std::abs(c.back());
        slow_s += std::abs(s.back());
      }
      // The slowest angle stays small.
      if (!is_angle || !(square > 0) || slow_c < slow_s) continue;
      return Angles{a, b, 0, neighbours || halves ? width : 2 * width,
                    neighbours && !halves ? 2u : 1u};
    }
  return std::nullopt;
}

bool Attention::is_padding(size_t sequence, size_t token, size_t earlier) const {
  if (token < earlier) return false;
  const size_t row = sequence * tokens_ + token - earlier;
  return row < padding_->size() && (*padding_)[row];
}

const Attention::Values& Attention::head_of(const Pick& pick, const AttentionModel& model,
                                            SideOf side, size_t sequence, size_t head) {
  const Key key{pick.table, side, sequence, pick.column(head), model.size};
  const auto found = heads_.find(key);
  if (found != heads_.end()) return found->second;
  const size_t all = pick.table->all();
  Values values(all * model.size);
  for (size_t t = 0; t < all; ++t)
    pick.table->read(side, sequence, t, key.column, model.size, values.data() + t * model.size);
  return heads_.emplace(key, std::move(values)).first->second;
}

const std::pair<Attention::Values, Attention::Values>& Attention::rotations(
    const AttentionModel& model, SideOf side, size_t sequence) {
  const size_t pairs = (angles_.rotated == 0 ? model.size : angles_.rotated) / 2;
  const size_t all = model.k.table->all();
  const Key key{angles_.cos, side, sequence, all, pairs};
  const auto found = rotations_.find(key);
  if (found != rotations_.end()) return found->second;
  std::pair<Values, Values> out{Values(all * pairs), Values(all * pairs)};
  if (angles_.cos != nullptr) {
    const size_t width = angles_.cos->width();
    Values row(width);
    // Tables may be of the tokens of this call alone.
    const size_t before = all - std::min(all, angles_.cos->all());
    for (size_t t = before; t < all; ++t)
      for (const bool of_cos : {true, false}) {
        (of_cos ? angles_.cos : angles_.sin)
            ->read(side, sequence, t - before, 0, width, row.data());
        for (size_t j = 0; j < pairs; ++j)
          (of_cos ? out.first : out.second)[t * pairs + j] =
              row[std::min(j * angles_.step, width - 1)];
      }
  } else {
    for (size_t t = 0; t < all; ++t)
      for (size_t j = 0; j < pairs; ++j) {
        const double exponent = -static_cast<double>(j) / static_cast<double>(pairs);
        const double angle = static_cast<double>(t) * std::pow(angles_.base, exponent);
        out.first[t * pairs + j] = std::cos(angle);
        out.second[t * pairs + j] = std::sin(angle);
      }
  }
  return rotations_.emplace(key, std::move(out)).first->second;
}

void Attention::turn(const AttentionModel& model, const std::pair<Values, Values>& rotations,
                     size_t token, int64_t shift, double* values) const {
  const size_t pairs = (angles_.rotated == 0 ? model.size : angles_.rotated) / 2;
  const size_t all = rotations.first.size() / pairs;
  const auto moved = static_cast<int64_t>(token) + shift;
  const bool in_table = moved >= 0 && moved < static_cast<int64_t>(all);
  const size_t from = in_table ? static_cast<size_t>(moved) : token;
  for (size_t j = 0; j < pairs; ++j) {
    double c = rotations.first[from * pairs + j];
    double s = rotations.second[from * pairs + j];
    if (!in_table && all >= 2) {  // as many steps further as there are none in the table
      const size_t last = (all - 1) * pairs + j;
      const double step = std::atan2(rotations.second[last], rotations.first[last]) -
                          std::atan2(rotations.second[last - pairs], rotations.first[last - pairs]);
      const double angle = std::atan2(s, c) + static_cast<double>(shift) * step;
      const double length = std::hypot(c, s);
      c = length * std::cos(angle);
      s = length * std::sin(angle);
    }
    const bool halves = model.turn == Turn::kHalves;
    const size_t first = halves ? j : 2 * j;
    const size_t second = halves ? j + pairs : 2 * j + 1;
    double& u = values[first];
    double& v = values[second];
    if (model.by_column) {  // each element by what stands at its own column of the table
      const auto at = [&](size_t column) {
        return from * pairs + (angles_.step == 1 ? column % pairs : column / 2);
      };
      const double turned = u * rotations.first[at(first)] - v * rotations.second[at(first)];
      v = v * rotations.first[at(second)] + u * rotations.second[at(second)];
      u = turned;
      continue;
    }
    const double turned = u * c - v * s;
    v = v * c + u * s;
    u = turned;
  }
}

bool Attention::row(const AttentionModel& model, SideOf side, size_t sequence, size_t token,
                    size_t head, double* out) {
  const size_t size = model.size;
  const size_t group = model.heads / model.kv_heads;
  size_t kv = model.mapping == Mapping::kTiled ? head % model.kv_heads : head / group;
  if (model.mapping == Mapping::kNext) kv = (kv + 1) % model.kv_heads;
  const size_t all = model.k.table->all();
  const size_t earlier = all - tokens_;
  const size_t self = earlier + token;
  if (model.q.table->all() < tokens_ || model.v.table->all() != all) return false;
  const size_t q_earlier = model.q.table->all() - tokens_;
  const Values& queries = head_of(model.q, model, side, sequence, head);
  const Values& keys = head_of(model.k, model, side, sequence, kv);
  const Values& values = head_of(model.v, model, side, sequence, kv);
  Values q(queries.begin() + static_cast<std::ptrdiff_t>((q_earlier + token) * size),
           queries.begin() + static_cast<std::ptrdiff_t>((q_earlier + token + 1) * size));
  const bool turns = model.turn != Turn::kNone;
  if (turns && (angles_.rotated > size || size % 2 != 0)) return false;
  const bool needs_angles = turns || model.earlier_turn;
  const std::pair<Values, Values>* angles =
      needs_angles ? &rotations(model, side, sequence) : nullptr;
  AttentionModel before = model;
  before.turn = model.earlier_turn.value_or(model.turn);
  before.by_column = false;
  if (turns && model.turn_q) turn(model, *angles, self, model.shift_q + model.shift_all, q.data());

  size_t end = all;
  if (model.mask == Mask::kCausal) end = self + 1;
  if (model.mask == Mask::kWithoutSelf) end = self;
  if (model.mask == Mask::kWithNext) end = std::min(all, self + 2);
  size_t begin = std::max(model.skipped_keys, model.skips_earlier ? earlier : 0);
  if (model.window > 0 && self + 1 > model.window) begin = std::max(begin, self + 1 - model.window);
  cost_ += 2 * size * (end - std::min(begin, end));
  std::vector<std::pair<double, size_t>> scores;
  double zeros = 0;  // keys of zeros, whose score is 0 and whose value adds nothing
  double largest = -std::numeric_limits<double>::infinity();
  Values k(size);
  for (size_t t = begin; t < end; ++t) {
    if (model.mask_padding && is_padding(sequence, t, earlier)) continue;
    const bool is_stale = model.stale != Stale::kNone && t + model.stale_back == self && t > 0;
    const size_t from = is_stale && model.stale == Stale::kOld ? t - 1 : t;
    if (is_stale && model.stale == Stale::kZero) {
      zeros = 1;
      largest = std::max(largest, 0.0);
      continue;
    }
    std::copy_n(keys.begin() + static_cast<std::ptrdiff_t>(from * size), size, k.begin());
    if (model.earlier_turn && from < earlier)
      turn(before, *angles, from, 0, k.data());
    else if (turns && model.turn_k)
      turn(model, *angles, from, from >= earlier ? model.shift_all : 0, k.data());
    double score = 0;
    for (size_t d = 0; d < size; ++d) score += q[d] * k[d];
    scores.emplace_back(score * model.scale, from);
    largest = std::max(largest, score * model.scale);
  }
  if (scores.empty()) return false;
  std::fill_n(out, size, 0.0);
  double total = zeros > 0 ? std::exp(-largest) : 0;
  for (const auto& [score, t] : scores) {
    const double weight = std::exp(score - largest);
    total += weight;
    for (size_t d = 0; d < size; ++d) out[d] += weight * values[t * size + d];
  }
  for (size_t d = 0; d < size; ++d) out[d] /= total;
  return std::isfinite(total);
}

}  // namespace ait::locate
