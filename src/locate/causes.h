// What kind of mistake a wrong value looks like. Each hypothesis says what my value would be if that
// mistake had been made, and is reported where this is what my value is.
//
//   CauseCase fault{golden, actual};                     // the value of both runs
//   fault.kind = capture::OpKind::kNorm;
//   fault.inputs.push_back({golden_x, actual_x, "x"});   // and what it was computed from
//   for (const Cause& cause : likely_causes(fault))
//     std::cout << cause.name << ": " << cause.text << "\n";  // "epsilon: my equals golden after …"
//
// Where the operation can be computed here (sums, norms, activations, attention), the plain one has
// to give golden's value from golden's inputs, and the one with the mistake my value from my inputs:
// the errors that the inputs brought along then cancel. Otherwise the two values are held against
// each other. Either way the error has to fall far; a hypothesis that merely fits noise is none.
//
// A new hypothesis is some lines in the file of its family (causes_*.cpp), a new family a function
// in cause_families.h and its line in the list of causes.cpp; tests/locate/causes_*_test.cpp plants
// each mistake by loops of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/op_kind.h"
#include "golden/golden.h"
#include "tensor/tensor.h"

namespace ait::locate {

// A value that went into the wrong one, as both runs have it.
struct CauseInput {
  Tensor golden;
  Tensor actual;
  std::string tensor;                                // what a person calls it
  capture::OpKind kind = capture::OpKind::kUnknown;  // of the operation that computed it
  std::vector<Tensor> golden_earlier = {};           // the same at the tokens before, oldest
  std::vector<Tensor> actual_earlier = {};           // first: what a cache holds
};

// An operation of the acceleration library, to be computed again from my inputs.
struct Replay {
  golden::GivenList operands;  // with its weights
  std::string param;           // JSON
  std::vector<golden::Recorded> outputs;
  size_t output = 0;  // which of these the value is
};

// A fault: a value of both runs, with the same number of elements in the same order.
struct CauseCase {
  Tensor golden;
  Tensor actual;
  capture::OpKind kind =
      capture::OpKind::kUnknown;  // of what computed it; unknown: between modules
  std::string type = {};
  std::vector<CauseInput> inputs = {};  // in the order in which they were computed
  // The value at the tokens before, oldest first, as far as they are at hand.
  std::vector<Tensor> golden_earlier = {};
  std::optional<Replay> replay = std::nullopt;
  std::vector<bool> padding = {};                  // rows that hold no token; empty: none
  std::optional<size_t> worst_row = std::nullopt;  // where it is known
  double noise = 0;  // the relative error that is expected of the value if it is sound
};

struct Cause {
  std::string name;           // "rope-pairing": stable, for scripts
  std::string text;           // a sentence
  double error = 0;           // |my - golden| over |golden|, where the mistake shows
  double residual_error = 0;  // what is left of it if the hypothesis holds
};

// The hypotheses that explain the fault, best first; after them those that only say which part of
// the value is hit. Looks at some thousand elements of each tensor where that is enough. Thread-safe.
std::vector<Cause> likely_causes(const CauseCase& fault);

}  // namespace ait::locate
