// Every golden, by family. What each computes stands in its file; registry.cpp says which operation
// it belongs to.
#pragma once

#include "golden/task.h"

namespace ait::golden {

// activation.cpp
Result<Expected> activation(Task& task);
// collective.cpp
Result<Expected> all_gather(Task& task);
Result<Expected> all_gather_v(Task& task);
Result<Expected> all_reduce(Task& task);
Result<Expected> all_to_all(Task& task);
Result<Expected> all_to_all_v(Task& task);  // and AllToAllVV2Operation
Result<Expected> broadcast(Task& task);
std::vector<size_t> changed_by_broadcast(graph::AtbParam& param);
Result<Expected> recv(Task& task);
Result<Expected> reduce_scatter(Task& task);
Result<Expected> reduce_scatter_v(Task& task);
Result<Expected> send(Task& task);
// elewise.cpp
Result<Expected> elewise(Task& task);
// linear.cpp
Result<Expected> linear(Task& task);  // LinearQuantOperation, too
std::vector<size_t> changed_by_linear(graph::AtbParam& param);
Result<Expected> linear_sparse(Task& task);
Result<Expected> matmul(Task& task);
// linear_parallel.cpp
Result<Expected> linear_parallel(Task& task);
// moe.cpp
std::vector<size_t> changed_by_group_topk(graph::AtbParam& param);
Result<Expected> fused_add_topk_div(Task& task);
Result<Expected> gating(Task& task);
Result<Expected> group_topk(Task& task);
// moe_matmul.cpp
std::vector<size_t> changed_by_inplace_add(graph::AtbParam& param);
Result<Expected> grouped_matmul_inplace_add(Task& task);
Result<Expected> grouped_matmul_with_routing(Task& task);
Result<Expected> swiglu_quant(Task& task);
// norm.cpp
Result<Expected> rms_norm(Task& task);
Result<Expected> layer_norm(Task& task);

}  // namespace ait::golden
