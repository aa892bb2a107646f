// numpy's .npy: one array. Written by numpy.save, by ait itself (write.h) and, inside zip archives,
// by numpy.savez.
//
// Layout:
//
//   1. 6 bytes: 0x93 "NUMPY"
//   2. 2 bytes: version, major then minor: 1.0, 2.0 or 3.0
//   3. header length, little-endian: 2 bytes in version 1.0, 4 bytes in 2.0 and 3.0
//   4. that many bytes of text (3.0: UTF-8, else latin-1): a Python dict with exactly the keys
//      'descr', 'fortran_order' and 'shape', padded with spaces, ended by a line feed:
//        {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//      Python 2 wrote the dimensions as 2L and 3L. numpy pads so that the data starts at a multiple
//      of 64 (older ones: 16), but nothing relies on it.
//   5. the elements without gaps, in C order or Fortran order, in the byte order of 'descr'
//
// Object arrays are pickled Python and are never loaded. ml_dtypes' bfloat16 and fp8 arrays are
// written as '<V2', '<V1' or '<f1', which does not say what they hold: they are refused with
// advice.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"
#include "tensor/tensor.h"

namespace ait::formats::npy {

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

struct Array {
  Tensor tensor;
  size_t surplus_bytes;  // after the array's last byte
};

// The array at the start of `bytes`, which `owner` keeps alive. Errors carry no path.
Result<Array> parse(std::shared_ptr<const void> owner, std::span<const std::byte> bytes);

// An array whose header lies elsewhere: `type` as in 'descr', and exactly as many bytes as it needs.
Result<Tensor> array_of(std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
                        std::string_view type, Shape shape, bool fortran_order);

}  // namespace ait::formats::npy
