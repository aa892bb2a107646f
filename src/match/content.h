// What a tensor holds, in short: enough to recognise the same data elsewhere in its run, whatever
// shape they have there, and to see whether it is made of others element by element.
//
//   const Content one = read_content(first_record);
//   const Content other = read_content(second_record);
//   if (one.hash != 0 && one.hash == other.hash) …           // the same numbers
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capture/capture.h"
#include "tensor/tensor.h"

namespace ait::match {

struct Content {
  uint64_t hash = 0;  // equal ones are equal data; 0: nothing could be read
  size_t elements = 0;
  size_t columns = 0;  // its last dimension
  DType dtype = DType::kFloat32;
  bool is_constant = false;  // all elements are the same, or so few that they say nothing
  // Elements from all over the tensor, for equal numbers of elements from the same places.
  std::vector<float> sample;

  bool is_read() const { return hash != 0; }
  bool is_float() const { return info(dtype).kind == DTypeKind::kFloat; }
};

Content read_content(const capture::TensorRecord& record);

}  // namespace ait::match
