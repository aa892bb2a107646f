// Writing tensors, through the library that also writes dumps (record/).
//
//   const NamedTensor one{"", tensor};
//   auto format = file_format_of(path);  // by the path's extension
//   if (auto done = write_tensor_file(path, {&one, 1}, *format); !done) return fail(done.error());
//
// The file appears whole or not at all. Bytes that already lie in row-major order are written from
// where they are; strided and byte-swapped tensors are brought into order in a temporary file
// first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "record/atomic_file.h"
#include "tensor/tensor.h"

namespace ait::formats {

enum class FileFormat : uint8_t { kAtbBin, kNpy, kNpz, kTorch, kSafetensors };

// .bin, .npy, .npz, .pt or .pth, .safetensors; nothing for other names.
std::optional<FileFormat> file_format_of(std::string_view path);

struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool fractal = false;  // its data are in ATB's format 29, which only a .bin can say
};

// .bin and .npy hold one tensor, whatever its name. A torch file of one nameless tensor is that
// tensor, any other a dict; in safetensors a nameless tensor is called "tensor", in .npz "arr_0".
// kUsage for more than one tensor or equal names, kUnsupported for types the format does not have,
// kUnwritable when the disk refuses. With `options.sync` the disk has the bytes before the file
// appears.
Result<void> write_tensor_file(const std::string& path, std::span<const NamedTensor> tensors,
                               FileFormat format, const record::WriteOptions& options = {});

}  // namespace ait::formats
