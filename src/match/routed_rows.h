// Which rows of two tensors in mixtures of experts belong together: tensors there hold rows of the
// tokens which a router gave to an expert. It follows from the experts that the routers of the two
// runs chose, where these were recorded: integers, [tokens, choices].
//
//     the router's choice     tensors of                     rows, as token/expert
//     token 0: 2, 1           a module for each expert       1: 0/1 2/1    2: 0/2 1/2    3: 1/3 2/3
//     token 1: 3, 2           one that is called for each    the same, in three calls
//     token 2: 1, 3           one for all, by expert         0/1 2/1 0/2 1/2 1/3 2/3
//                             one for all, by token          0/2 0/1 1/3 1/2 2/1 2/3
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "match/pair.h"
#include "match/sample.h"

namespace ait::match {

// Whose rows a tensor holds.
struct Routed {
  enum class By : uint8_t {
    kNobody,  // all tokens, once
    kAll,     // those of all experts
    kCall,    // those of one expert in each call
    kExpert,  // those of the expert that the module is
  };
  By by = By::kNobody;
  uint32_t number = 0;     // of the call, or of the expert
  uint32_t layer = 0;      // its last operation
  bool is_proven = false;  // the numbers of rows are those that the router's choice gives
};

// How the rows of one side of a pair were chosen.
struct RoutedSide {
  uint32_t chosen = 0;  // the slot of the router's choice
  Routed routed;
};
// The rows of an expert lie by token, or by the place that it has in the router's choice and then by
// token, as transformers does it: first the tokens whose first choice it is. Of two runs these are
// four ways, each a bit: golden's rows by token and mine, golden's and mine by choice, and so on.
enum RowOrders : uint8_t {
  kBothByToken = 1,
  kActualByChoice = 2,
  kGoldenByChoice = 4,
  kBothByChoice = 8,
  kAnyOrders = 15,
};

struct RoutedPair {
  RoutedSide golden;
  RoutedSide actual;
  uint8_t orders = kAnyOrders;  // those that may be
  bool is_rearranged =
      false;  // kAll: the rows of one side stand by expert, those of the other by token
};

// Which rows of a pair are compared: those of the same token and expert. Null: all, as they lie.
struct RoutedRows {
  std::shared_ptr<const RowChoice> golden;
  std::shared_ptr<const RowChoice> actual;
  std::string why_none;  // why none can be compared; empty where some can
};
// So many rows of golden's tensor, or of mine; asked for where data have to tell which correspond.
using ReadRowsOf = std::function<RowTable(bool is_golden, size_t rows)>;
RoutedRows rows_in_common(const RoutedPair& pair, const Integers& golden, const Integers& actual,
                          const ReadRowsOf& read);

// How many rows the expert or all of them have, by what the router chose.
size_t count_rows(const Routed& routed, const Integers& choice);

// Those of `pair.orders` that data bear out; all of them where data do not tell it.
uint8_t orders_by_data(const RoutedPair& pair, const Integers& golden, const Integers& actual,
                       const ReadRowsOf& read);

}  // namespace ait::match
