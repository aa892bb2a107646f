// Rotary embedding. By which angle each pair of elements is turned comes from tables that went into
// it, or from golden's input and value; what my value is turned by tells the mistake.
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <memory>

#include "golden/rounder.h"
#include "locate/attention_model.h"
#include "locate/cause_families.h"

namespace ait::locate {
namespace {

using Complex = std::complex<double>;

constexpr size_t kTokens = 24;  // that are looked at
constexpr size_t kLargestHead = 512;
constexpr size_t kFewestTurned = 2;  // pairs that are turned alike, to fit an angle to
constexpr int kMostShift = 64;

// Tokens of a value on one side.
using Table = std::vector<std::vector<double>>;

struct Heads {
  size_t size = 0;
  size_t rotated = 0;  // elements of each
  Turn turn = Turn::kHalves;

  size_t pairs() const { return rotated / 2; }
  size_t first(size_t head, size_t pair) const {
    return head * size + (turn == Turn::kHalves ? pair : 2 * pair);
  }
  size_t second(size_t head, size_t pair) const {
    return turn == Turn::kHalves ? first(head, pair) + pairs() : first(head, pair) + 1;
  }
};

Complex pair_at(const std::vector<double>& row, const Heads& heads, size_t head, size_t pair) {
  return {row[heads.first(head, pair)], row[heads.second(head, pair)]};
}

class Study {
 public:
  Study(const Evidence& evidence, const TokenForm& form)
      : evidence_(evidence),
        form_(form),
        value_input_{evidence.fault().golden, evidence.fault().actual, ""} {}

  void add(Candidates& out) {
    value_ = TokenTable::make(value_input_, form_.sequences, form_.tokens);
    if (!value_ || value_->earlier() != 0) return;
    for (const CauseInput& input : evidence_.fault().inputs)
      if (auto table = TokenTable::make(input, form_.sequences, form_.tokens))
        tables_.push_back(std::make_unique<TokenTable>(std::move(*table)));
    choose_tokens();
    golden_ = read(*value_, SideOf::kGolden);
    actual_ = read(*value_, SideOf::kActual);
    std::vector<const TokenTable*> tables;
    tables.reserve(tables_.size());
    for (const auto& table : tables_) tables.push_back(table.get());
    angles_ = angle_tables(tables, form_.tokens);
    for (const auto& table : tables_)
      if (table->width() == value_->width() && try_input(*table, out)) return;
    if (evidence_.fault().kind != capture::OpKind::kUnknown) try_fixed_angles(out);
  }

 private:
  void choose_tokens() {
    const size_t per_token = evidence_.row_count() / (form_.sequences * form_.tokens);
    for (const size_t row : evidence_.sample()) {
      const size_t token =
          form_.heads_first ? row / (per_token * form_.tokens) * form_.tokens + row % form_.tokens
                            : row / per_token;
      chosen_.push_back(token);
    }
    std::ranges::sort(chosen_);
    chosen_.erase(std::ranges::unique(chosen_).begin(), chosen_.end());
    std::vector<size_t> spread;
    const size_t wanted = std::min(kTokens, chosen_.size());
    spread.reserve(wanted);
    for (size_t k = 0; k < wanted; ++k) spread.push_back(chosen_[k * chosen_.size() / wanted]);
    chosen_ = spread;
  }

  Table read(const TokenTable& table, SideOf side, size_t ahead = 0) const {
    Table out;
    for (const size_t at : chosen_) {
      std::vector<double> row(table.width());
      const size_t token = std::min(at % form_.tokens + ahead, form_.tokens - 1);
      table.read(side, at / form_.tokens, table.earlier() + token, 0, row.size(), row.data());
      out.push_back(std::move(row));
    }
    return out;
  }

  // The smallest first: neighbours that are turned together are so in larger heads, too.
  std::vector<Heads> possible_heads() const {
    std::vector<Heads> out;
    std::vector<size_t> sizes = divisors(value_->width());
    std::ranges::reverse(sizes);
    for (const size_t size : sizes) {
      if (size % 2 != 0 || size < 4 || size > kLargestHead) continue;
      const size_t rotated = angles_ ? angles_->rotated : size;
      if (rotated > size || (angles_ && size > 2 * rotated)) continue;
      for (const Turn turn : {Turn::kHalves, Turn::kNeighbours})
        out.push_back({size, rotated, turn});
    }
    return out;
  }

  // For each token and pair the rotation, by the tables.
  std::vector<std::vector<Complex>> table_rotors(SideOf side, const Heads& heads,
                                                 size_t ahead = 0) const {
    const Table cos = read(*angles_->cos, side, ahead);
    const Table sin = read(*angles_->sin, side, ahead);
    std::vector<std::vector<Complex>> out;
    for (size_t t = 0; t < cos.size(); ++t) {
      out.emplace_back();
      for (size_t j = 0; j < heads.pairs(); ++j) {
        const size_t at = std::min(j * angles_->step, cos[t].size() - 1);
        out.back().emplace_back(cos[t][at], sin[t][at]);
      }
    }
    return out;
  }

  // The same by what golden's value is to golden's input, over all heads of a token.
  std::vector<std::vector<Complex>> golden_rotors(const Table& input, const Heads& heads) const {
    std::vector<std::vector<Complex>> out;
    for (size_t t = 0; t < golden_.size(); ++t) {
      out.emplace_back();
      for (size_t j = 0; j < heads.pairs(); ++j) {
        Complex product = 0;
        double square = 0;
        for (size_t h = 0; h < input[t].size() / heads.size; ++h) {
          const Complex x = pair_at(input[t], heads, h, j);
          product += pair_at(golden_[t], heads, h, j) * std::conj(x);
          square += std::norm(x);
        }
        out.back().push_back(square > 0 ? product / square : 1);
      }
    }
    return out;
  }

  static Table turned(const Table& input, const Heads& heads,
                      const std::vector<std::vector<Complex>>& rotors) {
    Table out = input;
    for (size_t t = 0; t < out.size(); ++t)
      for (size_t h = 0; h < out[t].size() / heads.size; ++h)
        for (size_t j = 0; j < heads.pairs(); ++j) {
          const Complex y = pair_at(input[t], heads, h, j) * rotors[t][j];
          out[t][heads.first(h, j)] = y.real();
          out[t][heads.second(h, j)] = y.imag();
        }
    return out;
  }

  // The same where each element takes the angle at its own column of the tables.
  Table turned_by_column(const Table& input, const Heads& heads,
                         const std::vector<std::vector<Complex>>& rotors) const {
    const bool in_turn = angles_ && angles_->step == 2;
    const auto angle = [&](size_t t, size_t column) {
      return rotors[t][in_turn ? column / 2 : column % heads.pairs()];
    };
    Table out = input;
    for (size_t t = 0; t < out.size(); ++t)
      for (size_t h = 0; h < out[t].size() / heads.size; ++h)
        for (size_t j = 0; j < heads.pairs(); ++j) {
          const Complex x = pair_at(input[t], heads, h, j);
          const size_t first = heads.first(h, j);
          const size_t second = heads.second(h, j);
          out[t][first] = (x * angle(t, first % heads.size)).real();
          out[t][second] = (x * angle(t, second % heads.size)).imag();
        }
    return out;
  }

  // |value - prediction| over golden's norm.
  double residual(const Table& value, const Table& predicted) const {
    double left = 0;
    double norm = 0;
    for (size_t t = 0; t < value.size(); ++t)
      for (size_t c = 0; c < value[t].size(); ++c) {
        left += (value[t][c] - predicted[t][c]) * (value[t][c] - predicted[t][c]);
        norm += golden_[t][c] * golden_[t][c];
      }
    return norm > 0 ? std::sqrt(left / norm) : 1;
  }

  bool try_input(const TokenTable& input, Candidates& out);
  void try_position(const Table& sound, const Heads& heads, double error, Candidates& out);
  void try_fixed_angles(Candidates& out);

  const Evidence& evidence_;
  TokenForm form_;
  CauseInput value_input_;
  std::optional<TokenTable> value_;
  std::vector<std::unique_ptr<TokenTable>> tables_;
  std::optional<Angles> angles_;
  std::vector<size_t> chosen_;  // tokens of all sequences
  Table golden_;
  Table actual_;
};

// Whether this input, turned, gives golden's value; if so, what was done to mine.
bool Study::try_input(const TokenTable& input, Candidates& out) {
  const Table x = read(input, SideOf::kGolden);
  const Table mine = read(input, SideOf::kActual);
  for (const Heads& heads : possible_heads()) {
    // Angles that are taken from golden itself need several heads to prove anything.
    if (!angles_ && value_->width() < 2 * heads.size) continue;
    auto rotors = angles_ ? table_rotors(SideOf::kGolden, heads) : golden_rotors(x, heads);
    if (!evidence_.is_model(residual(golden_, turned(x, heads, rotors)))) continue;
    if (angles_) rotors = table_rotors(SideOf::kActual, heads);
    const Table sound = turned(mine, heads, rotors);
    const double error = residual(actual_, sound);
    const auto offer = [&](const char* name, const char* what, const Table& predicted) {
      const Fit fit{error, residual(actual_, predicted)};
      if (evidence_.explains(fit)) evidence_.add(out, Proof::kModel, name, what, fit);
    };
    Heads other = heads;
    other.turn = heads.turn == Turn::kHalves ? Turn::kNeighbours : Turn::kHalves;
    offer("rope-pairing",
          heads.turn == Turn::kHalves
              ? "turning neighbouring elements of heads instead of elements half a head apart"
              : "turning elements half a head apart instead of neighbouring ones",
          turned(mine, other, rotors));
    offer("rope-pairing",
          "turning other pairs of elements, each element by the angle of its own column",
          turned_by_column(mine, other, rotors));
    offer("missing-rope", "leaving out the rotary embedding", mine);
    auto back = rotors;
    for (auto& row : back)
      for (Complex& rotor : row) rotor = std::conj(rotor);
    offer("sign", "turning the other way", turned(mine, heads, back));
    try_position(sound, heads, error, out);
    return true;
  }
  return false;
}

// Turned further by the same angles at all tokens: positions are off.
void Study::try_position(const Table& sound, const Heads& heads, double error, Candidates& out) {
  const size_t count = value_->width() / heads.size;
  if (sound.size() * count < kFewestTurned) return;
  std::vector<Complex> further;
  for (size_t j = 0; j < heads.pairs(); ++j) {
    Complex product = 0;
    for (size_t t = 0; t < sound.size(); ++t)
      for (size_t h = 0; h < count; ++h)
        product += pair_at(actual_[t], heads, h, j) * std::conj(pair_at(sound[t], heads, h, j));
    further.push_back(std::abs(product) > 0 ? product / std::abs(product) : 1);
  }
  const Fit fit{error, residual(actual_, turned(sound, heads, std::vector(sound.size(), further)))};
  if (!evidence_.explains(fit)) return;
  // By how many positions: the first pair is turned by one radian for each, and all others have to
  // agree, which tables show.
  int by = 0;
  if (angles_ && form_.tokens >= 2) {
    const auto here = table_rotors(SideOf::kGolden, heads);
    const auto next = table_rotors(SideOf::kGolden, heads, 1);
    double least = 0.1 * static_cast<double>(heads.pairs());
    for (int n = -kMostShift; n <= kMostShift; ++n) {
      double distance = 0;
      for (size_t j = 0; j < heads.pairs(); ++j) {
        const double step = std::arg(next[0][j] * std::conj(here[0][j]));
        distance += std::norm(further[j] - std::polar(1.0, step * n));
      }
      if (distance >= least) continue;
      least = distance;
      by = n;
    }
  }
  evidence_.add(out, Proof::kFitted, "position",
                by == 0 ? "turning all tokens further by the same angles"
                        : fmt::format("taking positions that are {} too {}", std::abs(by),
                                      by > 0 ? "large" : "small"),
                fit);
}

// Without the input: golden's value turned further.
void Study::try_fixed_angles(Candidates& out) {
  for (const Heads& heads : possible_heads()) {
    const size_t before = out.size();
    try_position(golden_, heads, residual(actual_, golden_), out);
    if (out.size() > before) return;
  }
}

// How the angles of a table are computed. What is rounded has a rounder.
struct AngleRule {
  double base = 0;
  int64_t shift = 0;  // of all positions
  const golden::Rounder* frequency = nullptr;
  const golden::Rounder* position = nullptr;
  const golden::Rounder* angle = nullptr;
};

class AngleTable {
 public:
  AngleTable(const AngleRule& rule, size_t pairs) : rule_(rule) {
    for (size_t j = 0; j < pairs; ++j) {
      const double exponent = static_cast<double>(j) / static_cast<double>(pairs);
      frequencies_.push_back(rounded(rule.frequency, std::pow(rule.base, -exponent)));
    }
  }
  double at(size_t token, size_t pair) const {
    const auto position = static_cast<double>(static_cast<int64_t>(token) + rule_.shift);
    return rounded(rule_.angle, rounded(rule_.position, position) * frequencies_[pair]);
  }

 private:
  static double rounded(const golden::Rounder* rounder, double value) {
    return rounder == nullptr ? value : rounder->round(value);
  }

  AngleRule rule_;
  std::vector<double> frequencies_;
};

// A table of cosines or sines by the usual formula: positions, roundings and the base that mine may
// have been made with.
void table_causes(const Evidence& evidence, Candidates& out) {
  const size_t columns = evidence.columns();
  const Shape& shape = evidence.fault().golden.shape();
  if (columns < 4 || columns > kLargestHead || columns % 2 != 0 || shape.size() < 2) return;
  const auto tokens = static_cast<size_t>(shape[shape.size() - 2]);
  size_t earlier = 0;
  for (const Tensor& then : evidence.fault().golden_earlier) earlier += then.elements() / columns;
  const size_t sequences = std::max<size_t>(1, evidence.row_count() / std::max<size_t>(tokens, 1));
  earlier /= sequences;
  constexpr double kBases[] = {10000, 500000, 1000000};
  for (const double base : kBases)
    for (const size_t pairs : {columns / 2, columns})
      for (const bool in_turn : {false, true})
        for (const bool is_cos : {true, false}) {
          if (in_turn && pairs == columns) continue;
          const auto by = [&](const AngleRule& rule) {
            return [&, table = AngleTable(rule, pairs)](size_t i, size_t c) {
              const double angle =
                  table.at(earlier + evidence.sample()[i] % tokens, in_turn ? c / 2 : c % pairs);
              return is_cos ? std::cos(angle) : std::sin(angle);
            };
          };
          if (!evidence.is_model(evidence.model_error(by({base})))) continue;
          const auto offer = [&](const AngleRule& rule, const char* name, const std::string& what) {
            const Fit fit = evidence.fit(by(rule));
            if (!evidence.explains(fit)) return false;
            evidence.add(out, Proof::kModel, name, what, fit);
            return true;
          };
          for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
            const golden::Rounder rounder(type);
            const bool found =
                offer({.base = base, .frequency = &rounder}, "precision",
                      fmt::format("rounding the frequencies of its angles to {}", name(type))) ||
                offer({.base = base, .position = &rounder}, "precision",
                      fmt::format("rounding positions to {}", name(type))) ||
                offer({.base = base, .angle = &rounder}, "precision",
                      fmt::format("rounding its angles to {}", name(type)));
            if (found) return;
          }
          for (const double other : kBases)
            if (other != base && offer({other}, "rope-base",
                                       fmt::format("taking {:.0f} for the base of its frequencies, "
                                                   "which is {:.0f} in golden",
                                                   other, base)))
              return;
          for (int n = 1; n <= kMostShift; ++n)
            for (const int64_t shift : {n, -n})
              if (offer({base, shift}, "position",
                        fmt::format("taking positions that are {} too {}", n,
                                    shift > 0 ? "large" : "small")))
                return;
          return;
        }
}

}  // namespace

void rotary_causes(const Evidence& evidence, Candidates& out) {
  using capture::OpKind;
  const OpKind kind = evidence.fault().kind;
  if (kind != OpKind::kRotary && kind != OpKind::kUnknown && !type_has(evidence.fault(), "rope") &&
      !type_has(evidence.fault(), "rotary"))
    return;
  const size_t before = out.size();
  if (kind != OpKind::kUnknown) table_causes(evidence, out);
  if (out.size() > before) return;
  for (const TokenForm& form : forms_of(evidence.fault().golden.shape())) {
    if (form.tokens == 0 || form.sequences == 0) continue;
    Study(evidence, form).add(out);
    if (out.size() > before) return;
  }
}

}  // namespace ait::locate
