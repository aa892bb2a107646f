// What the two forms of torch.save have in common: tensors in nested dicts, lists and tuples,
// described by a pickle that refers to storages kept elsewhere. The forms differ only in where the
// storages lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/pickle.h"
#include "formats/registry.h"
#include "formats/zip.h"
#include "tensor/tensor.h"

namespace ait::formats {

// Limits of the walk over the pickle's values: lists may contain themselves, or each other a
// thousandfold.
inline constexpr size_t kMaxVisits = size_t{1} << 21;
inline constexpr size_t kMaxDepth = 200;
inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxNameBytesInAll = size_t{1} << 26;
// How many elements strides of 0 may make of a smaller storage (torch's expand). Each costs time to
// read, which a file of a few bytes must not be able to ask for without end.
inline constexpr size_t kMaxExpandedElements = size_t{1} << 28;

// A pickle's reference to a storage.
struct StorageReference {
  std::string_view key;
  const pickle::Global* type;
  uint64_t elements;  // of `type`
  // Only in old files: a window onto the storage, in elements.
  bool is_view = false;
  uint64_t view_offset_elements = 0;
};

// The storage that a persistent id names, or kCorrupt.
Result<StorageReference> storage_reference(const pickle::Document& document, pickle::Id persistent);

class TorchFile : public TensorFile {
 public:
  size_t size() const override { return entries_.size(); }
  std::string name(size_t index) const override { return entries_[index].name; }
  // kUnsupported for what is no plain tensor: sparse, quantised, nested, meta.
  Result<Tensor> load(size_t index) const override;
  std::string note() const override;

 protected:
  // `document` looks into bytes that the derived class keeps alive.
  TorchFile(std::string path, pickle::Document document)
      : path_(std::move(path)), document_(std::move(document)) {}

  // Finds the tensors. kCorrupt where the values nest without end, or name more tensors than the
  // file has bytes.
  Result<void> collect(size_t file_bytes);

  const std::string& path() const { return path_; }
  const pickle::Document& document() const { return document_; }

  // All bytes of a storage, at least as many as the reference promises.
  virtual Result<OwnedBytes> storage(const StorageReference& reference) const = 0;
  virtual bool byte_swapped() const = 0;
  // Keeps the bytes that `document` looks into alive.
  virtual std::shared_ptr<const void> owner() const = 0;

 private:
  struct Entry {
    std::string name;
    pickle::Id id;
  };
  class Walk;

  Result<Tensor> load_entry(const Entry& entry) const;
  Result<Tensor> load_array(const Entry& entry) const;

  std::string path_;
  pickle::Document document_;
  std::vector<Entry> entries_;
  size_t numpy_scalars_ = 0;  // which are no tensors
};

}  // namespace ait::formats
