// The makers of all operation types, with ATB's default parameters; registry.cpp lists them by
// name.
#pragma once

#include <memory>

#include "atb/operation.h"

namespace atb {

std::unique_ptr<Operation> MakeActivation();
std::unique_ptr<Operation> MakeAllGather();
std::unique_ptr<Operation> MakeAllReduce();
std::unique_ptr<Operation> MakeConcat();
std::unique_ptr<Operation> MakeElewise();
std::unique_ptr<Operation> MakeGather();
std::unique_ptr<Operation> MakeLayerNorm();
std::unique_ptr<Operation> MakeLinear();
std::unique_ptr<Operation> MakePagedAttention();
std::unique_ptr<Operation> MakeReshapeAndCache();
std::unique_ptr<Operation> MakeRmsNorm();
std::unique_ptr<Operation> MakeRope();
std::unique_ptr<Operation> MakeSelfAttention();
std::unique_ptr<Operation> MakeSoftmax();
std::unique_ptr<Operation> MakeSplit();
std::unique_ptr<Operation> MakeTranspose();

}  // namespace atb
