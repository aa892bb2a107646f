/* What a library offers that runs single operations for `ait llm opcheck -rerun`: a shared object
   with one function, ait_rerun_plugin(). docs/opcheck.md has a whole plug-in, engine/rerun another.

   A plug-in is loaded into a process of its own, which runs one operation after another. Where it
   crashes or hangs, that operation has no result, and the next one finds a new process. Whatever it
   writes to standard output goes to standard error. Nothing may be thrown out of its functions.

   This header stands alone: C99 or any C++. */
#ifndef AIT_RERUN_PLUGIN_H
#define AIT_RERUN_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the structures below. A plug-in of another number is refused. */
#define AIT_RERUN_ABI 1
#define AIT_RERUN_MAX_RANK 8

/* What infer and run return. Every other number counts as AIT_RERUN_FAILED. */
#define AIT_RERUN_OK 0
#define AIT_RERUN_UNSUPPORTED 1 /* the library has no such operation or mode */
#define AIT_RERUN_FAILED 2      /* it has, but that went wrong */

/* Row-major without gaps, in the machine's byte order. */
typedef struct AitRerunTensor {
  int32_t dtype; /* aclDataType: 0 float, 1 float16, 2 int8, 3 int32, 9 int64, 12 bool, 27 bf16 … */
  int32_t format; /* aclFormat: 2 nd, 29 fractal_nz */
  int32_t rank;
  int32_t is_given; /* 0: an optional input that the operation was called without; all else is 0 */
  int64_t dims[AIT_RERUN_MAX_RANK];
  uint64_t bytes;
  void* data;
} AitRerunTensor;

/* One operation. All memory belongs to the caller and lives as long as the call. */
typedef struct AitRerunCall {
  const char* operation; /* "LinearOperation" */
  const char* param;     /* JSON as the dump has it; "" where there is none */
  int32_t device;        /* of -device */
  uint32_t input_count;
  AitRerunTensor* inputs; /* copies: an operation that writes to its inputs may do so, and what it
                             leaves there is what is checked */
  uint32_t output_capacity;
  uint32_t output_count;
  AitRerunTensor* outputs;
  char* message; /* where something went wrong: why, in a sentence that ends with a 0 */
  size_t message_bytes;
} AitRerunCall;

typedef struct AitRerunPlugin {
  uint32_t abi;        /* AIT_RERUN_ABI */
  const char* library; /* what runs the operations, with its version, for people */
  /* Sets output_count, and dtype, format, rank and dims of so many outputs. */
  int (*infer)(AitRerunCall* call);
  /* Computes: the outputs that infer named now have their memory, which holds zeros. */
  int (*run)(AitRerunCall* call);
} AitRerunPlugin;

#define AIT_RERUN_EXPORT __attribute__((visibility("default")))
AIT_RERUN_EXPORT const AitRerunPlugin* ait_rerun_plugin(void);

#ifdef __cplusplus
}
#endif

#endif
