// Which rows of two runs hold the same tokens, where row i of the one is not row i of the other.
//
//     golden, padded on the left     my side, packed        [position, sequence] instead of
//     . . a b c                      a b c d e f g h        [sequence, position]: every other row
//     d e f g h                                             of the one is the first half of the other
//
// The embeddings of the tokens tell it: rows of the two runs that hold the same are the same token.
// Where they do not, the mask of a padded batch does.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "match/pair.h"
#include "match/sample.h"

namespace ait::match {

// What is known of one side: how its rows are arranged, and tensors from before the first layer.
struct RowsSide {
  Tokens tokens;
  bool is_packed = false;  // sequences of any lengths lie one after the other
  std::vector<RowTable> tables;
  std::shared_ptr<const std::vector<bool>>
      padding;                     // of each row, by the mask; null: none is known
  std::vector<int64_t> positions;  // of each row in its sequence; empty: they are not known
};

struct RowPair {
  std::shared_ptr<const RowChoice> golden;
  std::shared_ptr<const RowChoice> actual;
  // Which sequences go together, golden's and mine; where each has its place in a batch.
  std::vector<std::pair<uint32_t, uint32_t>> sequences;
};

// Without choices where row i goes with row i, the smaller side being repeated where one has more.
// Nothing where no arrangement that is known makes the rows agree.
// `sequences` is what an earlier round told: new words of two sequences may be the same.
std::optional<RowPair> find_rows(const RowsSide& golden, const RowsSide& actual,
                                 const std::vector<std::pair<uint32_t, uint32_t>>& sequences = {});

// Whether most rows of two tables agree, each with the one in its place.
bool rows_agree(const RowTable& golden, const RowTable& actual);

// How many of these pairs of rows agree.
size_t count_agreeing(const RowTable& golden, const RowTable& actual,
                      const std::vector<std::pair<uint32_t, uint32_t>>& rows);

// Rows of two tables that hold the same, in golden's order: each is nearest to the other, and much
// nearer than any other.
std::vector<std::pair<uint32_t, uint32_t>> pair_rows(const RowTable& golden,
                                                     const RowTable& actual);

}  // namespace ait::match
