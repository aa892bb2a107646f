// A small llama with seeded random weights, for trying things out where no model is at hand.
#pragma once

#include <string>

#include "base/error.h"

namespace ait_llama {

// Writes config.json and model.safetensors into `folder`, which is made if missing: 4 layers, 64
// wide, 4 heads over 2 key heads, 256 tokens, fp32, 0.8 MB. The same bytes on every machine.
// kUnwritable where the disk refuses.
ait::Result<void> write_random_model(const std::string& folder);

}  // namespace ait_llama
