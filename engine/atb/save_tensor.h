// The library's own tensor saving, older than any probe:
//
//   ACLTRANSFORMER_SAVE_TENSOR=1             switches it on
//   ACLTRANSFORMER_SAVE_TENSOR_MAX=2         rounds to save; without it 1
//   ACLTRANSFORMER_SAVE_TENSOR_RUNNER=A,B    only these runners; empty or unset: all
//   ACLTRANSFORMER_HOME_PATH                 where; without it the current folder
//
// Files: {home}/tensors/{pid}/{round}/{model}/{i}_{Layer}GraphRunner/{j}_{Name}Runner/
// {before,after}/{inTensor,outTensor}{n}.bin, in the format of docs/formats/atb_bin.md. {round} is
// AIT_CMP_TASK_ID where that is set (it is read anew each time: a script sets it between
// dialogues, and rounds are then counted from 0 again), else the number of the model's execution.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "atb/types.h"

namespace atb {

bool save_tensor_on();

// Which round of its task an execution is.
class TaskRound {
 public:
  uint64_t of(uint64_t executions);

 private:
  std::string task_;
  uint64_t first_ = 0;
};

// Whether tensors of this runner ("SelfAttentionRunner") are to be saved in this round.
bool save_tensor_wanted(const std::string& runner, uint64_t round);

// Writes tensors as {home}/tensors/{pid}/{round}/{path}/{moment}/{in|out}Tensor{n}.bin. A failure
// is said once on stderr and does not stop the run.
void save_tensor_files(std::span<const Tensor> tensors, bool input, const std::string& path,
                       const char* moment, uint64_t round);

}  // namespace atb
