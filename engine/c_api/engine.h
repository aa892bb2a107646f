/* The library for callers that do not speak C++, such as ctypes.

   Functions that return int give 0 for success; those that return a pointer give NULL on failure.
   What went wrong is then in ait_engine_error(), of the calling thread, until its next call. Memory
   of tensors always belongs to the caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AIT_ENGINE_API __attribute__((visibility("default")))
#define AIT_ENGINE_MAX_RANK 8

typedef struct {
  int32_t dtype; /* aclDataType */
  int32_t rank;
  int64_t dims[AIT_ENGINE_MAX_RANK];
  void* data;
} AitEngineTensor;

AIT_ENGINE_API const char* ait_engine_error(void);

/* All operation types, separated by commas. */
AIT_ENGINE_API const char* ait_engine_operation_types(void);
/* `param` is a JSON object; absent keys take their defaults. */
AIT_ENGINE_API void* ait_engine_operation_new(const char* type, const char* param);
AIT_ENGINE_API void ait_engine_operation_free(void* operation);
/* The operation's whole parameters as JSON; valid until the next call with this operation. */
AIT_ENGINE_API const char* ait_engine_operation_param(void* operation);
/* Fills in type and shape of the outputs; `capacity` is how many `out` has room for. Returns the
   number of outputs, or -1. */
AIT_ENGINE_API int ait_engine_operation_infer(void* operation, const AitEngineTensor* in,
                                              size_t in_count, AitEngineTensor* out,
                                              size_t capacity);
AIT_ENGINE_API int ait_engine_operation_run(void* operation, const AitEngineTensor* in,
                                            size_t in_count, const AitEngineTensor* out,
                                            size_t out_count);

/* `faults` holds one fault a line (see ait-llama --list-faults), or is empty. */
AIT_ENGINE_API void* ait_engine_model_load(const char* folder, const char* dtype, int left_padding,
                                           const char* faults);
AIT_ENGINE_API void ait_engine_model_free(void* model);
AIT_ENGINE_API int64_t ait_engine_model_vocabulary(void* model);
/* `tokens` holds the prompts one after another, `lengths` the length of each. `logits` has room for
   batch x vocabulary. */
AIT_ENGINE_API int ait_engine_model_prefill(void* model, const int64_t* tokens,
                                            const size_t* lengths, size_t batch, size_t more_tokens,
                                            float* logits);
AIT_ENGINE_API int ait_engine_model_decode(void* model, const int64_t* tokens, size_t batch,
                                           float* logits);

#ifdef __cplusplus
}
#endif
