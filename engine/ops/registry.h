// Every operation type of the library, one line each.
//
// A new operation is its class in a file of this folder, with a function that makes one with ATB's
// default parameters,
//
//   std::unique_ptr<Operation> make_rope() { return std::make_unique<RopeOperation>(); }
//
// and a line in this list: "RopeOperation" is then made by make_rope().
#pragma once

#include <memory>
#include <span>
#include <string>

#include "atb/operation.h"

// A macro, since nothing else makes a name and the declaration of a function from one line.
#define AIT_ENGINE_OPERATIONS(X)        \
  X(Activation, activation)             \
  X(AllGather, all_gather)              \
  X(AllReduce, all_reduce)              \
  X(Concat, concat)                     \
  X(Elewise, elewise)                   \
  X(Gather, gather)                     \
  X(LayerNorm, layer_norm)              \
  X(Linear, linear)                     \
  X(PagedAttention, paged_attention)    \
  X(ReshapeAndCache, reshape_and_cache) \
  X(RmsNorm, rms_norm)                  \
  X(Rope, rope)                         \
  X(SelfAttention, self_attention)      \
  X(Softmax, softmax)                   \
  X(Split, split)                       \
  X(Transpose, transpose)

namespace atb {

#define AIT_DECLARE_MAKER(name, maker) std::unique_ptr<Operation> make_##maker();
AIT_ENGINE_OPERATIONS(AIT_DECLARE_MAKER)
#undef AIT_DECLARE_MAKER

struct OperationMaker {
  const char* type;
  std::unique_ptr<Operation> (*make)();
};

// As CreateOperation in atb/operation.h, of types that need not be the library's own.
AIT_ATB_API CreateResult CreateOperation(const std::string& type, const std::string& param_json,
                                         std::span<const OperationMaker> among);

}  // namespace atb
