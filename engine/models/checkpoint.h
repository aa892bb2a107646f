// The weights of a Hugging Face folder: model.safetensors, or shards named by
// model.safetensors.index.json.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "atb/types.h"
#include "base/error.h"
#include "formats/registry.h"

namespace atb_speed {

// A tensor and what keeps its bytes alive: the mapped file where it can be used as it lies, memory
// of our own where it was converted or cut.
struct Weight {
  atb::Tensor tensor;
  std::shared_ptr<const void> owner;
};

// Part of a weight along one dimension, for one rank.
struct Slice {
  size_t dimension = 0;
  int64_t begin = 0;
  int64_t end = -1;  // -1: all of it
};

class Checkpoint {
 public:
  static ait::Result<Checkpoint> open(const std::string& folder);

  bool has(const std::string& name) const { return where_.contains(name); }
  // The named weight, which must have this shape, as `dtype` (floating), cut to `slice`.
  ait::Result<Weight> load(const std::string& name, const atb::Dims& shape, atb::DataType dtype,
                           const Slice& slice = {}) const;

 private:
  struct Place {
    size_t file = 0;
    size_t index = 0;
  };
  std::string folder_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<ait::formats::TensorFile>> files_;
  std::map<std::string, Place> where_;

  ait::Result<void> add_file(const std::string& path);
};

// Memory for a tensor, aligned and filled with zeros.
Weight allocate(const atb::TensorDesc& desc);

// A two-dimensional weight as int8 with one scale for each row: {weight, scales fp32}.
std::pair<Weight, Weight> quantise_rows(const Weight& weight);

}  // namespace atb_speed
