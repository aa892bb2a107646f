#include "record/npz_encoder.h"

#include <cstring>

#include "record/npy_encoder.h"
#include "record/zip_writer.h"

namespace ait::record {
namespace {

constexpr size_t kMaxNameBytes = 0xFFF0;  // a zip's limit, with ".npy"

bool is_good_name(const char* name, size_t bytes) {
  if (bytes > kMaxNameBytes || std::memchr(name, 0, bytes) != nullptr) return false;
  for (size_t i = 0; i < bytes;) {
    const size_t length = utf8_length(name + i, bytes - i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace

EncodeResult encode_npz(const NamedImage* images, size_t count, FileImage& file) {
  ZipWriter zip(file);
  for (size_t i = 0; i < count; ++i) {
    const NamedImage& named = images[i];
    if (!is_good_name(named.name, named.name_bytes)) return EncodeResult::kBadName;
    const TensorImage& image = named.image;
    FileImage array;
    if (const EncodeResult result = encode_npy(image, array); result != EncodeResult::kOk)
      return result;
    ByteBuffer member;
    member.add(named.name, named.name_bytes);
    member.add(".npy", sizeof ".npy");
    if (member.out_of_memory()) return EncodeResult::kNoMemory;
    // The array's text comes first, then its data where there are any.
    const iovec* parts = array.parts();
    zip.add(member.data(), parts[0].iov_base, parts[0].iov_len, image.data, image.bytes);
  }
  zip.finish();
  return zip.out_of_memory() ? EncodeResult::kNoMemory : EncodeResult::kOk;
}

}  // namespace ait::record
