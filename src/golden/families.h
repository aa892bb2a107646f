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
// cache.cpp
Result<Expected> reshape_and_cache(Task& task);
Result<Expected> reshape_and_cache_with_stride(Task& task);
Result<Expected> reshape_and_cache_omni(Task& task);
Result<Expected> kv_cache(Task& task);
Result<Expected> block_copy(Task& task);
Result<Expected> paged_cache_load(Task& task);
Result<Expected> norm_rope_reshape(Task& task);
std::vector<size_t> written_caches(graph::AtbParam& param);
// elewise.cpp
Result<Expected> elewise(Task& task);
// latent_attention.cpp
Result<Expected> multi_latent_attention(Task& task);
// linear.cpp
Result<Expected> linear(Task& task);  // LinearQuantOperation, too
std::vector<size_t> changed_by_linear(graph::AtbParam& param);
Result<Expected> linear_sparse(Task& task);
Result<Expected> matmul(Task& task);
// linear_parallel.cpp
Result<Expected> linear_parallel(Task& task);
// mla_preprocess.cpp
Result<Expected> mla_preprocess(Task& task);
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
// move.cpp
Result<Expected> gather(Task& task);
Result<Expected> concat(Task& task);
Result<Expected> split(Task& task);
Result<Expected> slice(Task& task);
Result<Expected> transpose(Task& task);
Result<Expected> as_strided(Task& task);
Result<Expected> repeat(Task& task);
Result<Expected> set_value(Task& task);
Result<Expected> fill(Task& task);
Result<Expected> where(Task& task);
Result<Expected> pad(Task& task);
Result<Expected> unpad(Task& task);
Result<Expected> transdata(Task& task);
// norm.cpp
Result<Expected> rms_norm(Task& task);
Result<Expected> layer_norm(Task& task);
// paged_attention.cpp
Result<Expected> paged_attention(Task& task);
// ring_attention.cpp
Result<Expected> ring_mla(Task& task);
Result<Expected> fa_update(Task& task);
// norm_variants.cpp
Result<Expected> rms_norm_with_stride(Task& task);
Result<Expected> layer_norm_with_stride(Task& task);
Result<Expected> cohere_layer_norm(Task& task);
Result<Expected> gather_pre_rms_norm(Task& task);
// order.cpp
Result<Expected> softmax(Task& task);
Result<Expected> reduce(Task& task);
Result<Expected> cumsum(Task& task);
Result<Expected> sort(Task& task);
Result<Expected> nonzero(Task& task);
Result<Expected> onehot(Task& task);
Result<Expected> index_add(Task& task);
Result<Expected> scatter_elements(Task& task);
// rope.cpp
Result<Expected> rope(Task& task);
Result<Expected> rope_q_concat(Task& task);
Result<Expected> dynamic_ntk(Task& task);
// self_attention.cpp
Result<Expected> self_attention(Task& task);
// sampling.cpp
Result<Expected> multinomial(Task& task);
Result<Expected> topk_topp_sampling(Task& task);

}  // namespace ait::golden
