// The acceleration library's .bin: one tensor under a text header. Written by the ATB probes (ait
// llm dump and its predecessors) and by the labelled on-line comparison.
//
// Layout:
//
//   1. header lines "name=value", each ended by "\n" ("\r\n" is accepted), in any order; names with
//      '$' belong to the container, the others to the tensor; unknown names are ignored:
//        $Version=1.0
//        $Object.Count=1             0 in a file that only describes or only holds statistics
//        $Object.Length=12           bytes of all data
//        format=2                    aclFormat, 2 = nd; absent = nd
//        dtype=1                     aclDataType, see acl_types.cpp
//        dims=2,3                    empty = scalar
//        max= min= mean= l2norm=     statistics dumps only; six decimals, or a word
//        data=path                   instead of the object: the bytes are those of another .bin;
//                                    msprobe writes numbers of operations, 13_1_6_outtensor0.bin
//        $Object.data=0,12           offset from the end of the header, and length
//   2. the line "$End=1", which ends the header
//   3. the data, row-major, little-endian, in the tensor's own storage format
//
// Old probes append, so a path written twice holds two records: the first is read, and the note
// says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"
#include "tensor/tensor.h"

namespace ait::formats::atb_bin {

// A real header is about 100 bytes; a link may be a long path.
inline constexpr size_t kMaxHeaderBytes = 16384;

inline constexpr int64_t kFormatNd = 2;
inline constexpr int64_t kFormatFractalNz = 29;

struct Header {
  struct Object {
    uint64_t offset_bytes;  // from the end of the header
    uint64_t length_bytes;
  };

  int64_t format = kFormatNd;
  int64_t dtype_code = -1;
  Shape dims;
  std::optional<uint64_t> object_length_bytes;
  std::optional<Object> object;
  std::string link;       // value of "data=", or empty
  bool has_data = false;  // an object, a link, or bytes after the header that are not disowned
  bool has_statistics = false;  // "max=" or one of its kin is there
  // Where all four are there and are numbers; "nan" and "inf" are.
  std::optional<Description::Statistics> statistics;
  size_t header_bytes = 0;  // up to and with the line "$End=1"
};

// Reads the header alone; touches no data. Errors carry no path.
Result<Header> parse_header(std::span<const std::byte> bytes);

bool sniff(std::span<const std::byte> bytes);

// Fails only on a header that cannot be read. A file without data opens, and its load() fails with
// a message that begins "tensor has no data."; one with a zero dimension needs none and loads.
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::atb_bin
