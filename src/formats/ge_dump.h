// What Ascend's graph engine (GE) dumps of one operation: all its inputs and outputs in one file
// without an extension, named {type}.{name}.{task}.{stream}.{microseconds}.
//
// Layout, all numbers little-endian:
//
//   1. 8 bytes: header length H
//   2. H bytes: a protobuf message DumpData, see ge_header.h
//   3. the data of input 0, input 1, …, output 0, …, buffers, workspaces, without gaps: as many bytes
//      of each as its message says
//
// A tensor is named "input_0" or "output_0". It is given in its logical shape, the one that the
// model knows, wherever the stored order is known: docs/formats/ge_dump.md lists them. What lies in
// the file in that order, or can be reached by strides, is mapped; anything else is put in order in
// an unlinked temporary file when it is loaded. A tensor of a type that ait does not know, or that
// reaches beyond the end of a file that was cut short, is an error of its own load() only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::ge_dump {

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

// What a file holds, by its header alone.
struct Summary {
  std::string op_name;  // as the graph calls it: names of files have no dots and slashes
  size_t inputs = 0;
  size_t outputs = 0;
  uint64_t file_bytes = 0;
};

// Fails as open() does, whatever the file looks like. A file of eight bytes or less holds nothing.
Result<Summary> summarise(const std::string& path);

}  // namespace ait::formats::ge_dump
