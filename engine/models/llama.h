// A llama-family model on one rank: prompts in, logits out.
//
//   auto model = Llama::load("folder", {.type = ModelType::kFp16});
//   if (!model) return fail(model.error());
//   auto logits = (*model)->prefill({{1, 15, 7}, {2, 9}}, 8);  // room for 8 more tokens each
//   logits = (*model)->decode({next_of_first, next_of_second});
//
// Logits are batch x vocabulary, row-major, the last token of each sequence. Not for several
// threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "atb/communicator.h"
#include "atb/types.h"
#include "base/error.h"
#include "models/fault_plan.h"

namespace atb_speed {

enum class ModelType : uint8_t { kFp32, kFp16, kBf16, kW8A8 };
AIT_ATB_API ait::Result<ModelType> parse_model_type(const std::string& text);
// "bf16", "fp16" or "fp32": one rounding unit of it; or a number above 0 and up to 1.
AIT_ATB_API ait::Result<float> parse_perturbation(const std::string& text);

// How sequences of different length lie side by side in the prefill.
enum class Padding : uint8_t {
  kNone,  // one after another, as ATB's models do it
  kLeft,  // filled up on the left to the longest, as `generate` of transformers does it
};

struct LlamaOptions {
  ModelType type = ModelType::kFp32;
  Padding padding = Padding::kNone;
  int device = 0;
  atb::Communicator* communicator = nullptr;  // of a tensor-parallel group; must outlive the model
  std::vector<Fault> faults;
  float perturbation = 0;  // atb::Context::set_perturbation
};

class AIT_ATB_API Llama {
 public:
  static ait::Result<std::unique_ptr<Llama>> load(const std::string& folder,
                                                  const LlamaOptions& options);
  ~Llama();
  Llama(const Llama&) = delete;
  Llama& operator=(const Llama&) = delete;

  int64_t vocabulary() const;

  // Starts anew with these prompts and keeps room for `more_tokens` further ones of each.
  ait::Result<std::vector<float>> prefill(const std::vector<std::vector<int64_t>>& prompts,
                                          size_t more_tokens);
  // One more token for each sequence.
  ait::Result<std::vector<float>> decode(const std::vector<int64_t>& tokens);

 private:
  class Impl;
  explicit Llama(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atb_speed
