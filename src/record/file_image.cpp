#include "record/file_image.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ait::record {

const char* describe(EncodeResult result) {
  switch (result) {
    case EncodeResult::kOk:
      return "all is well";
    case EncodeResult::kUnsupportedType:
      return "the format has no such element type";
    case EncodeResult::kTooManyDimensions:
      return "the format does not allow so many dimensions";
    case EncodeResult::kBadImage:
      return "the dimensions and the number of bytes contradict each other";
    case EncodeResult::kBadName:
      return "the format cannot carry such a tensor name";
    case EncodeResult::kNoMemory:
      return "not enough memory";
  }
  return "";
}

size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kInt8:
    case ElementType::kUInt8:
    case ElementType::kFloat8E4M3FN:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E4M3FNUZ:
    case ElementType::kFloat8E5M2FNUZ:
    case ElementType::kFloat8E8M0FNU:
    case ElementType::kInt4Packed:
    case ElementType::kFloat4Packed:
      return 1;
    case ElementType::kInt16:
    case ElementType::kUInt16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kUInt32:
    case ElementType::kFloat32:
    case ElementType::kComplex32:
      return 4;
    case ElementType::kInt64:
    case ElementType::kUInt64:
    case ElementType::kFloat64:
    case ElementType::kComplex64:
      return 8;
    case ElementType::kComplex128:
      return 16;
  }
  return 0;
}

bool is_consistent(const TensorImage& image) {
  if (image.rank > kMaxDimensions) return false;
  uint64_t bytes = element_bytes(image.type);
  bool empty = false;
  for (size_t d = 0; d < image.rank; ++d) {
    const int64_t size = image.dims[d];
    if (size < 0) return false;
    if (size == 0) empty = true;
    if (size > 0 && __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      return false;
  }
  return (empty ? 0 : bytes) == image.bytes && (image.data != nullptr || image.bytes == 0);
}

size_t utf8_length(const char* text, size_t bytes) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const bool bad = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
                   (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F);
  return bad ? 0 : length;
}

char* ByteBuffer::reserve(size_t more) {
  if (out_of_memory_) return nullptr;
  if (more > capacity_ - size_) {
    size_t wanted = capacity_ < 512 ? 512 : capacity_ * 2;
    if (wanted - size_ < more) wanted = size_ + more;
    void* grown = std::realloc(data_, wanted);
    if (grown == nullptr) {
      out_of_memory_ = true;
      return nullptr;
    }
    data_ = static_cast<char*>(grown);
    capacity_ = wanted;
  }
  char* at = data_ + size_;
  size_ += more;
  return at;
}

void ByteBuffer::add(const void* bytes, size_t count) {
  if (count == 0) return;
  if (char* at = reserve(count); at != nullptr) std::memcpy(at, bytes, count);
}

void ByteBuffer::add_repeated(char byte, size_t count) {
  if (count == 0) return;
  if (char* at = reserve(count); at != nullptr) std::memset(at, byte, count);
}

void ByteBuffer::add_text(const char* text) { add(text, std::strlen(text)); }

void ByteBuffer::add_decimal(int64_t value) {
  char digits[24];
  const int length = std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
  add(digits, static_cast<size_t>(length));
}

iovec* FileImage::add_part() {
  if (count_ == capacity_) {
    const size_t wanted = capacity_ == 0 ? 4 : capacity_ * 2;
    void* grown = std::realloc(parts_, wanted * sizeof(iovec));
    if (grown == nullptr) {
      out_of_memory_ = true;
      return nullptr;
    }
    parts_ = static_cast<iovec*>(grown);
    capacity_ = wanted;
  }
  return &parts_[count_++];
}

void FileImage::add_copy(const void* bytes, size_t count) {
  if (count == 0) return;
  copies_.add(bytes, count);
  size_bytes_ += count;
  if (last_is_copy_) {
    parts_[count_ - 1].iov_len += count;
  } else if (iovec* part = add_part(); part != nullptr) {
    *part = {nullptr, count};
    last_is_copy_ = true;
  }
}

void FileImage::add_reference(const void* bytes, size_t count) {
  if (count == 0) return;
  if (iovec* part = add_part(); part != nullptr) *part = {const_cast<void*>(bytes), count};
  size_bytes_ += count;
  last_is_copy_ = false;
}

const iovec* FileImage::parts() {
  char* next = copies_.data();
  for (size_t i = 0; i < count_; ++i) {
    if (parts_[i].iov_base != nullptr) continue;
    parts_[i].iov_base = next;
    next += parts_[i].iov_len;
  }
  return parts_;
}

bool FileImage::is_reference(size_t part) const {
  const char* at = static_cast<const char*>(parts_[part].iov_base);
  return at < copies_.data() || at >= copies_.data() + copies_.size();
}

WriteStatus FileImage::write(const char* path, const WriteOptions& options) {
  if (out_of_memory()) return {ENOMEM, "prepare the file's header"};
  return write_file(path, parts(), count_, options);
}

}  // namespace ait::record
