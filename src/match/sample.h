// A few rows of a tensor, from which it can be told whether two tensors hold the same.
//
// Tensors of a model are matrices of tokens: whatever their shape, a row holds all that belongs to
// one token. A handful of whole rows is enough to recognise a tensor, however large it is, also
// where the other side has it in another shape, as a part of a wider one, or in shards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "capture/recording.h"
#include "match/pair.h"
#include "tensor/tensor.h"

namespace ait::match {

// What a round worked on.
struct Tokens {
  size_t count = 0;      // of all sequences
  size_t sequences = 1;  // each of which may have been asked for its last token only
  size_t looked_at = 0;  // samples are taken among so many of the first; 0: all
  size_t length = 0;     // of the sequences that are looked at; 0: all tokens by all sequences
  std::shared_ptr<const RowChoice> choice = {};  // of rows that the other side has, too; null: all
  bool operator==(const Tokens&) const = default;
};

// Guesses the tokens of a round from the shapes of its tensors.
Tokens guess_tokens(std::span<const Shape> shapes, capture::Traits::Batch batch);

// Whether one of the shapes can be cut into rows of that many tokens.
bool may_have(std::span<const Shape> shapes, const Tokens& tokens);

// One tensor, or one rank's shard of it.
struct Sample {
  size_t columns = 0;
  bool last_only = false;    // it has one row for each sequence, not one for each token
  bool once = false;         // it has the rows of one sequence, which hold for all: positions
  bool heads_first = false;  // read as if tokens came first
  size_t own_rows = 0;  // it has so many rows, which are not those of all tokens; 0: it has those
  bool is_float = true;
  std::vector<std::vector<float>> rows;  // those of sampled_rows()

  bool informative() const;               // not constant, not empty
  std::optional<float> constant() const;  // the number that all elements are
  uint64_t hash() const;
  bool same_rows(const Sample& other) const {
    return last_only == other.last_only && own_rows == other.own_rows;
  }
  bool same_layout(const Sample& other) const {
    return last_only == other.last_only && once == other.once && heads_first == other.heads_first &&
           own_rows == other.own_rows;
  }
};

// The whole of a tensor; nothing where it was not kept, cannot be read, or holds no plain numbers.
std::optional<Tensor> load_tensor(const capture::TensorRecord& record);

// Which rows are taken: some of all tokens, then the last of the first and the last sequence.
std::vector<size_t> sampled_rows(const Tokens& tokens);

// The tensor in every layout that its shape allows, the most usual first; none where it cannot be
// read or is no matrix of tokens. A tensor of [2, 3, 151] in a round of three tokens can be two
// heads, or shards, of each token.
std::vector<Sample> read_samples(const capture::TensorRecord& record, const Tokens& tokens);
// In the plainest of them: tokens come first, and each has a row, or each sequence.
std::optional<Sample> read_sample(const capture::TensorRecord& record, const Tokens& tokens);

// The beginnings of all rows of a tensor.
using RowTable = std::vector<std::vector<float>>;
// Of the columns that `of` takes. Empty where it has not one row of floating-point numbers for each
// token, or too many rows.
RowTable read_table(const capture::TensorRecord& record, const Tokens& tokens,
                    const Transform& of = {});

std::optional<Shape> read_shape(const capture::TensorRecord& record);

struct Integers {
  Shape shape;
  std::vector<int64_t> numbers;
};
// Nothing where it holds no integers, or more than the tokens of any prompt.
std::optional<Integers> read_integers(const capture::TensorRecord& record);

// How far two stretches of rows are apart.
struct Distance {
  // |a - b| / max(|a|, |b|) of a row, the median over rows: one token with outliers (the first one
  // of a sequence, usually) must not decide. About 1.4 for unrelated data.
  double value = 2;
  size_t elements = 0;  // that took part

  // Whether unrelated data could hardly be that near; see sample.cpp.
  bool agrees() const;
};

// Columns [golden_first, …) against [actual_first, …).
Distance distance(const Sample& golden, size_t golden_first, const Sample& actual,
                  size_t actual_first, size_t columns);
inline Distance distance(const Sample& golden, const Sample& actual) {
  return golden.columns == actual.columns ? distance(golden, 0, actual, 0, golden.columns)
                                          : Distance{};
}

// Where in the first `within` columns of `wide` those of `narrow` stand; nothing where they do not.
std::optional<size_t> find_columns(const Sample& narrow, size_t first, size_t columns,
                                   const Sample& wide, size_t within);

// Whether two tensors may add up to a third, by a few of their elements: most pairs can be passed
// over without adding them.
bool may_add_up(const Sample& one, const Sample& other, const Sample& sum);

// Shards as one.
Sample side_by_side(std::span<const Sample> shards);
Sample sum_of(std::span<const Sample> parts);

}  // namespace ait::match
