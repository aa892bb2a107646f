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
  // `description` is what is known where the file holds no data.
  SingleTensor(std::string_view format, Result<Tensor> tensor, std::string note,
               std::optional<Description> description = std::nullopt)
      : format_(format),
        tensor_(std::move(tensor)),
        note_(std::move(note)),
        description_(std::move(description)) {}

  std::string_view format() const override { return format_; }
  size_t size() const override { return 1; }
  std::string name(size_t) const override { return {}; }
  Result<Tensor> load(size_t) const override { return tensor_; }
  Result<Description> describe(size_t index) const override {
    return description_ ? *description_ : TensorFile::describe(index);
  }
  std::string note() const override { return note_; }

 private:
  std::string_view format_;
  Result<Tensor> tensor_;
  std::string note_;
  std::optional<Description> description_;
};

}  // namespace ait::formats
