// Tensor files in another format.
//
//   auto written = convert_file("Add.Add_2.44.6.17", "out/add.npy", FileFormat::kNpy);
//   // out/add.input.0.npy, out/add.input.1.npy, out/add.output.0.npy
//
//   auto tree = convert_tree("msit_ge_dump", "out", FileFormat::kTorch, stop, warn);
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/write.h"

namespace ait::convert {

// ".npy"
std::string_view extension_of(formats::FileFormat format);

// "layer.bin" as "layer.npy"; an extension that is no format's stays: "Add.Add_2.44.6.17.npy".
std::string renamed(std::string_view path, formats::FileFormat format);

// Writes all tensors of `from` to `to`. Where the format holds only one tensor and there are names,
// each gets a file, named before the extension of `to`; the tensors of GE dumps "input.0", as
// Ascend's tools do. Returns what was written. A file that holds no data, or tensors of which one
// cannot be read or stored, is an error.
Result<std::vector<std::string>> convert_file(const std::string& from, const std::string& to,
                                              formats::FileFormat format);

struct TreeCounts {
  size_t files = 0;    // that were converted
  size_t written = 0;  // files that they became
  size_t left = 0;     // tensor files that could not be; each was warned of
  size_t others = 0;   // files of no format
};

// Every tensor file below `from`, at the same place below `to`, which must not lie inside `from`.
// Ends after the current file when `stop` becomes true.
Result<TreeCounts> convert_tree(const std::string& from, const std::string& to,
                                formats::FileFormat format, const std::atomic<bool>& stop,
                                const std::function<void(const Error&)>& warn);

}  // namespace ait::convert
