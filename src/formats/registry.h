// One door to every file format that ait reads. The content decides, never the file's name.
//
//   auto file = open_tensor_file(path);
//   if (!file) return fail(file.error());  // no such file, or of no known format
//   for (size_t i = 0; i < (*file)->size(); ++i) {
//     auto tensor = (*file)->load(i);
//     if (!tensor) return fail(tensor.error());  // this one is damaged, the others may be whole
//     shapes[(*file)->name(i)] = tensor->shape();
//   }
//
// tests/formats/example_test.cpp runs this example.
//
// This is the main header of `formats`; write.h is the way back. A new format is one file pair
// beside this one that has a sniff() and an open() (npy.h is a model), one line in registry.cpp,
// one page in docs/formats/, one fuzz target in fuzz/ and one folder of hostile files in
// tests/attacks/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace ait::formats {

// What is known of a tensor besides its data.
struct Description {
  // Of a file that keeps these in place of the data.
  struct Statistics {
    double maximum = 0;
    double minimum = 0;
    double mean = 0;
    double l2_norm = 0;
    // What each may be off by for being written with a fixed number of decimals. That all are
    // rounded to float32 at best is not counted here.
    double rounding = 0;
    std::string sketch = {};  // metrics/sketch.h as text; empty: none was kept
    // Which part of the norm they may be off by for being rounded to the tensor's own type. What
    // float32 leaves is not counted here either.
    double rounding_of_type = 0;
    std::optional<uint64_t> nan = {};  // how many elements are; nothing: nobody counted
    std::optional<uint64_t> inf = {};
  };

  DType dtype;
  Shape shape;
  bool has_data = true;
  std::optional<Statistics> statistics;
  bool fractal = false;  // the data are in ATB's format 29, FRACTAL_NZ, whatever the shape says
  std::string checksum = {};  // of the data, as a tool wrote it; empty where it wrote none
};

// A file that holds any number of named tensors. Opening reads only the directory; `load` maps one
// tensor and is where a damaged member shows, so that its neighbours stay usable. Thread-safe once
// opened.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  virtual std::string_view format() const = 0;  // "npy", "torch", …: as printed by `ait show`
  virtual size_t size() const = 0;
  // Where the tensor stands in the file: "" for a bare tensor, "layers.0.weight" or "[1].mask" for
  // nested ones.
  virtual std::string name(size_t index) const = 0;
  virtual Result<Tensor> load(size_t index) const = 0;
  // Type and shape; what else the file says of a tensor whose data it does not hold.
  virtual Result<Description> describe(size_t index) const;
  // A remark about the file that a person should see ("12 bytes follow the data"), or empty.
  virtual std::string note() const { return {}; }
};

// How to read a file without any header; see raw.h.
struct RawLayout {
  DType dtype;
  std::optional<Shape> shape;  // without it: one dimension, as many elements as the file holds
};

// Opens a file of any known format. With `raw`, the file is taken as bare bytes whatever it looks
// like. With `buffers` it may be read as a whole (MappedFile::open).
Result<std::unique_ptr<TensorFile>> open_tensor_file(
    const std::string& path, const std::optional<RawLayout>& raw = std::nullopt,
    const ReadBuffers* buffers = nullptr);

// The only tensor of a file; fails with kUsage, listing the first names, where it holds none or
// several. `name` picks one of several.
Result<Tensor> load_single(const std::string& path, std::string_view name = {},
                           const std::optional<RawLayout>& raw = std::nullopt);

// One line of the registry: open_tensor_file calls `open` of the first format whose `sniff` says
// yes.
struct Format {
  std::string_view name;
  bool (*sniff)(std::span<const std::byte> bytes);
  Result<std::unique_ptr<TensorFile>> (*open)(std::shared_ptr<const MappedFile> file);
  bool holds_data = true;  // it can hold more than descriptions
};

}  // namespace ait::formats
