// The header of a GE dump file: a protobuf message DumpData. Only what is needed is kept; unknown
// fields of any kind are passed over.
//
//   DumpData  1 version (text)  2 dump_time (µs)  3 output (OpOutput…)  4 input (OpInput…)
//             5 buffer (OpBuffer…)  6 op_name (text)  7 attr  8 space (Workspace…)  9 dfx_message
//   OpOutput  1 data_type  2 format  3 shape  4 original_op  5 data  6 size  7 original_shape
//             8 sub_format  …
//   OpInput   1 data_type  2 format  3 shape  4 data  5 size  6 original_shape  7 sub_format  …
//   OpBuffer, Workspace   3 size
//   Shape     1 dim (uint64, packed or not)
//
// The numbers of inputs and of outputs differ from field 4 on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace ait::formats::ge_dump {

// Real headers have kilobytes; the bounds keep a hostile one from taking gigabytes of memory.
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{256} << 20;
inline constexpr size_t kMaxTensors = 100'000;

// How the header of another kind of device begins, which is no protobuf.
inline constexpr uint32_t kNanoMagic = 0x5A5A5A5A;

struct TensorEntry {
  bool is_input = false;
  uint32_t index = 0;
  int64_t data_type = 0;
  int64_t format = 0;
  int64_t groups = 0;  // sub_format: of a convolution's weight
  std::vector<uint64_t> stored;
  std::vector<uint64_t> logical;  // original_shape; may be empty
  uint64_t size_bytes = 0;

  std::string name() const;  // "input_0"
};

struct Header {
  std::string op_name;
  std::vector<TensorEntry> tensors;  // inputs, then outputs: the order of their data
  uint64_t data_offset_bytes = 0;    // of the first tensor, in the file
};

// `file` is the whole file. Errors carry no path.
Result<Header> parse_header(std::span<const std::byte> file);

}  // namespace ait::formats::ge_dump
