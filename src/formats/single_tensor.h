// What the readers of one-tensor formats hand out: everything was decided when the file was opened.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "formats/registry.h"

namespace ait::formats {

class SingleTensor : public TensorFile {
 public:
  // `format` outlives the file (a literal). An error in `tensor` is what load(0) returns.
  SingleTensor(std::string_view format, Result<Tensor> tensor, std::string note)
      : format_(format), tensor_(std::move(tensor)), note_(std::move(note)) {}

  std::string_view format() const override { return format_; }
  size_t size() const override { return 1; }
  std::string name(size_t) const override { return {}; }
  Result<Tensor> load(size_t) const override { return tensor_; }
  std::string note() const override { return note_; }

 private:
  std::string_view format_;
  Result<Tensor> tensor_;
  std::string note_;
};

}  // namespace ait::formats
