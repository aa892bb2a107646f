// Attention in double precision from recorded queries, keys and values, one row of one head at a
// time, with the mistakes that can be made in it. Hypotheses are tried on it (causes_attention.cpp).
//
// Values come in many layouts: tokens or heads first, queries, keys and values of their own or fused
// into one tensor. A Pick says where the elements of a head are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "locate/causes.h"

namespace ait::locate {

enum class SideOf : uint8_t { kGolden, kActual };

// How the value lies: [sequences, tokens, heads, size], or heads before tokens.
struct TokenForm {
  size_t sequences = 1;
  size_t tokens = 1;
  size_t width = 1;
  bool heads_first = false;
};

// How a value of this shape may lie.
std::vector<TokenForm> forms_of(const Shape& shape);

// An input as tokens of sequences, each token a row of `width` elements; tokens of earlier calls
// come first.
class TokenTable {
 public:
  // `sequences` and `tokens` are those of the value. Nothing where the input does not fit to them.
  static std::optional<TokenTable> make(const CauseInput& input, size_t sequences, size_t tokens);

  size_t width() const { return width_; }
  size_t earlier() const { return earlier_; }  // tokens before those of the value
  size_t all() const { return earlier_ + tokens_; }
  const CauseInput& input() const { return *input_; }

  // `count` elements from column `first` on of one token.
  void read(SideOf side, size_t sequence, size_t token, size_t first, size_t count,
            double* out) const;

 private:
  struct Part {
    const Tensor* golden;
    const Tensor* actual;
    size_t tokens;
    size_t sequences;  // one may stand for all
    size_t heads;      // of [batch, heads, tokens, size]; 0: tokens come before heads
  };
  static std::optional<Part> part_of(const Tensor& golden, const Tensor& actual, size_t sequences,
                                     size_t tokens, size_t width);

  const CauseInput* input_ = nullptr;
  std::vector<Part> parts_;  // oldest first
  size_t width_ = 0;
  size_t earlier_ = 0;
  size_t tokens_ = 0;
};

// Head h begins at column first + h / group * group_stride + h % group * stride.
struct Pick {
  const TokenTable* table = nullptr;
  size_t first = 0;
  size_t stride = 0;
  size_t group = 1;
  size_t group_stride = 0;
  size_t column(size_t head) const {
    return first + head / group * group_stride + head % group * stride;
  }
};

enum class Turn : uint8_t { kNone, kHalves, kNeighbours };
enum class Mask : uint8_t { kCausal, kNone, kWithoutSelf, kWithNext };
enum class Mapping : uint8_t {
  kInterleaved,
  kTiled,
  kNext
};  // from heads of queries to those of keys
// What a place of the cache holds that was not written in time: the token before, or nothing.
enum class Stale : uint8_t { kNone, kOld, kZero };

struct AttentionModel {
  size_t heads = 0;
  size_t kv_heads = 0;
  size_t size = 0;  // of a head
  Pick q, k, v;
  Turn turn = Turn::kNone;
  // Keys of earlier calls were turned like this before, whatever is wrong now; nothing: as the others.
  std::optional<Turn> earlier_turn = std::nullopt;
  bool by_column = false;  // elements are turned by the angles of their columns, not of their pair
  bool turn_q = true;
  bool turn_k = true;
  int64_t shift_q = 0;    // positions that queries are off by
  int64_t shift_all = 0;  // and those that both are off by, but for keys of earlier calls
  double scale = 1;
  Mask mask = Mask::kCausal;
  bool mask_padding = true;
  size_t skipped_keys = 0;  // the first ones are left out
  Mapping mapping = Mapping::kInterleaved;
  bool skips_earlier = false;  // tokens of earlier calls are left out
  size_t window = 0;           // only so many keys are seen; 0: all
  Stale stale = Stale::kNone;
  size_t stale_back = 0;  // which place, counted back from the token itself
};

// The rotations of all tokens: from tables that were recorded, or by the usual formula.
struct Angles {
  const TokenTable* cos = nullptr;
  const TokenTable* sin = nullptr;
  double base = 0;     // of the formula, where there are no tables
  size_t rotated = 0;  // elements of a head; 0: all of it
  size_t step = 1;     // from one angle to the next in a row of the tables
};

// Two of the tables are the cosines and sines of angles: the sums of their squares are the same
// everywhere. `tokens` are those of the value.
std::optional<Angles> angle_tables(const std::vector<const TokenTable*>& tables, size_t tokens);

class Attention {
 public:
  // `padding`: of each row of the value, whether it holds no token; may be empty.
  Attention(size_t sequences, size_t tokens, const std::vector<bool>& padding, Angles angles)
      : sequences_(sequences), tokens_(tokens), padding_(&padding), angles_(angles) {}

  bool has_angles() const { return angles_.cos != nullptr || angles_.base > 0; }
  // What the head gives for a token of the value: model.size numbers. False where it cannot be told.
  bool row(const AttentionModel& model, SideOf side, size_t sequence, size_t token, size_t head,
           double* out);
  // The multiplications so far, to keep within bounds.
  size_t cost() const { return cost_; }

 private:
  using Values = std::vector<double>;
  const Values& head_of(const Pick& pick, const AttentionModel& model, SideOf side, size_t sequence,
                        size_t head);
  // cos and sin of each pair of each token, one token after the other.
  const std::pair<Values, Values>& rotations(const AttentionModel& model, SideOf side,
                                             size_t sequence);
  void turn(const AttentionModel& model, const std::pair<Values, Values>& rotations, size_t token,
            int64_t shift, double* values) const;
  bool is_padding(size_t sequence, size_t token, size_t earlier) const;

  size_t sequences_;
  size_t tokens_;
  const std::vector<bool>* padding_;
  Angles angles_;
  size_t cost_ = 0;
  struct Key {
    const TokenTable* table;
    SideOf side;
    size_t sequence;
    size_t column;
    size_t size;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Values> heads_;
  std::map<Key, std::pair<Values, Values>> rotations_;
};

}  // namespace ait::locate
