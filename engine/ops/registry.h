// Every operation type of the library, one line each.
//
// A new operation is its class in a file of this folder, with a function that makes one with ATB's
// default parameters,
//
//   std::unique_ptr<Operation> MakeRope() { return std::make_unique<RopeOperation>(); }
//
// and a line in this list: "RopeOperation" is then made by MakeRope().
#pragma once

#include <memory>
#include <span>
#include <string>

#include "atb/operation.h"

// A macro, since nothing else makes a name and the function of that name from one word.
#define AIT_ENGINE_OPERATIONS(X) \
  X(Activation)                  \
  X(AllGather)                   \
  X(AllReduce)                   \
  X(Concat)                      \
  X(Elewise)                     \
  X(Gather)                      \
  X(LayerNorm)                   \
  X(Linear)                      \
  X(PagedAttention)              \
  X(ReshapeAndCache)             \
  X(RmsNorm)                     \
  X(Rope)                        \
  X(SelfAttention)               \
  X(Softmax)                     \
  X(Split)                       \
  X(Transpose)

namespace atb {

#define AIT_DECLARE_MAKER(name) std::unique_ptr<Operation> Make##name();
AIT_ENGINE_OPERATIONS(AIT_DECLARE_MAKER)
#undef AIT_DECLARE_MAKER

struct OperationMaker {
  const char* type;
  std::unique_ptr<Operation> (*make)();
};

// As CreateOperation in atb/operation.h, of types that need not be the library's own.
ATB_API CreateResult CreateOperation(const std::string& type, const std::string& param_json,
                                     std::span<const OperationMaker> among);

}  // namespace atb
