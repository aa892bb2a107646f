// A file about to be written: small headers of our own and, between them, the caller's tensor
// bytes, which are referred to and never copied.
//
//   FileImage file;
//   if (auto made = encode_npy(image, file); made != EncodeResult::kOk) return describe(made);
//   if (auto status = file.write("x.npy"); !status.ok()) return status.step;
//
// The encoders fill it (atb_bin_encoder.h, npy_encoder.h, torch_zip_encoder.h,
// safetensors_encoder.h). The memory that images point at must stay as it is until `write` has
// returned.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "record/atomic_file.h"
#include "record/tensor_image.h"

namespace ait::record {

enum class [[nodiscard]] EncodeResult : uint8_t {
  kOk,
  kUnsupportedType,    // the format has no code for this element type
  kTooManyDimensions,  // more than the format's readers accept
  kBadImage,           // dimensions and byte count contradict each other
  kBadName,            // the format cannot carry this tensor name
  kNoMemory,
};

// One clause for a message: "the format has no such element type".
const char* describe(EncodeResult result);

struct NamedImage {
  const char* name;  // UTF-8, need not end in a zero byte
  size_t name_bytes;
  TensorImage image;
};

// numpy's limit, the widest of all formats.
inline constexpr size_t kMaxDimensions = 64;

size_t element_bytes(ElementType type);

// Whether the dimensions are possible and account for exactly `bytes`.
bool is_consistent(const TensorImage& image);

// Length of the UTF-8 sequence at `text`, 0 if it is none: overlong forms, surrogates and values
// beyond U+10FFFF would make a header that strict readers refuse. `bytes` is at least 1.
size_t utf8_length(const char* text, size_t bytes);

// Bytes that grow. Out of memory is remembered rather than reported at each step.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ~ByteBuffer() { std::free(data_); }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;

  void add(const void* bytes, size_t count);
  void add_repeated(char byte, size_t count);
  void add_text(const char* text);
  void add_decimal(int64_t value);
  template <typename T>
  void add_little_endian(T value) {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    add(&value, sizeof value);
  }

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool out_of_memory() const { return out_of_memory_; }

 private:
  char* reserve(size_t more);

  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  bool out_of_memory_ = false;
};

class FileImage {
 public:
  FileImage() = default;
  ~FileImage() { std::free(parts_); }
  FileImage(const FileImage&) = delete;
  FileImage& operator=(const FileImage&) = delete;

  void add_copy(const void* bytes, size_t count);
  void add_copy(const ByteBuffer& buffer) { add_copy(buffer.data(), buffer.size()); }
  void add_reference(const void* bytes, size_t count);

  uint64_t size_bytes() const { return size_bytes_; }
  bool out_of_memory() const { return out_of_memory_ || copies_.out_of_memory(); }

  // The whole content, in order. Nothing may be added afterwards.
  const iovec* parts();
  size_t part_count() const { return count_; }
  // Of a part: whether it is the caller's memory, and no copy. Parts must have been asked for.
  bool is_reference(size_t part) const;

  WriteStatus write(const char* path, const WriteOptions& options = {});

 private:
  iovec* add_part();

  ByteBuffer copies_;
  // A part without address is the next stretch of `copies_`, which still moves while it grows.
  iovec* parts_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
  uint64_t size_bytes_ = 0;
  bool last_is_copy_ = false;
  bool out_of_memory_ = false;
};

}  // namespace ait::record
