#include "record/torch_zip_encoder.h"

#include <cstdio>
#include <cstring>

#include "record/zip_writer.h"

namespace ait::record {
namespace {

constexpr uint32_t kMax32 = 0xFFFFFFFF;

struct TorchType {
  const char* storage;  // torch.FloatStorage…, or null where only an untyped storage exists
  const char* dtype;    // then the type is said beside it: torch.uint16…
};

TorchType torch_type(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return {"BoolStorage", nullptr};
    case ElementType::kInt8:
      return {"CharStorage", nullptr};
    case ElementType::kUInt8:
      return {"ByteStorage", nullptr};
    case ElementType::kInt16:
      return {"ShortStorage", nullptr};
    case ElementType::kInt32:
      return {"IntStorage", nullptr};
    case ElementType::kInt64:
      return {"LongStorage", nullptr};
    case ElementType::kFloat16:
      return {"HalfStorage", nullptr};
    case ElementType::kBFloat16:
      return {"BFloat16Storage", nullptr};
    case ElementType::kFloat32:
      return {"FloatStorage", nullptr};
    case ElementType::kFloat64:
      return {"DoubleStorage", nullptr};
    case ElementType::kComplex64:
      return {"ComplexFloatStorage", nullptr};
    case ElementType::kComplex128:
      return {"ComplexDoubleStorage", nullptr};
    case ElementType::kUInt16:
      return {nullptr, "uint16"};
    case ElementType::kUInt32:
      return {nullptr, "uint32"};
    case ElementType::kUInt64:
      return {nullptr, "uint64"};
    case ElementType::kFloat8E4M3FN:
      return {nullptr, "float8_e4m3fn"};
    case ElementType::kFloat8E5M2:
      return {nullptr, "float8_e5m2"};
    case ElementType::kFloat8E4M3FNUZ:
      return {nullptr, "float8_e4m3fnuz"};
    case ElementType::kFloat8E5M2FNUZ:
      return {nullptr, "float8_e5m2fnuz"};
    case ElementType::kFloat8E8M0FNU:
      return {nullptr, "float8_e8m0fnu"};
    case ElementType::kComplex32:
      return {nullptr, "complex32"};
    case ElementType::kFloat4Packed:
      return {nullptr, "float4_e2m1fn_x2"};
    case ElementType::kInt4Packed:
      break;
  }
  return {nullptr, nullptr};
}

// The pickle instructions needed, protocol 2. Nothing is memoised: repeating a name costs a few
// bytes.
class Pickle {
 public:
  Pickle() { out_.add("\x80\x02", 2); }

  void mark() { out_.add("(", 1); }
  void tuple() { out_.add("t", 1); }
  void empty_dict() { out_.add("}", 1); }
  void set_items() { out_.add("u", 1); }
  void persistent_id() { out_.add("Q", 1); }
  void reduce() { out_.add("R", 1); }
  void no() { out_.add("\x89", 1); }
  void stop() { out_.add(".", 1); }

  void global(const char* module, const char* name) {
    out_.add_text("c");
    out_.add_text(module);
    out_.add_text("\n");
    out_.add_text(name);
    out_.add_text("\n");
  }
  void text(const char* bytes, size_t count) {
    out_.add("X", 1);
    out_.add_little_endian(static_cast<uint32_t>(count));
    out_.add(bytes, count);
  }
  void text(const char* bytes) { text(bytes, std::strlen(bytes)); }
  void integer(int64_t value) {
    if (value >= 0 && value <= 0xFF) {
      out_.add("K", 1);
      out_.add_little_endian(static_cast<uint8_t>(value));
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      out_.add("J", 1);
      out_.add_little_endian(static_cast<int32_t>(value));
    } else {
      out_.add("\x8a\x08", 2);
      out_.add_little_endian(value);
    }
  }

  const ByteBuffer& bytes() const { return out_; }

 private:
  ByteBuffer out_;
};

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks), and v3 with the
// type last.
void add_tensor(Pickle& pickle, const TensorImage& image, size_t key) {
  const TorchType type = torch_type(image.type);
  pickle.global("torch._utils",
                type.dtype == nullptr ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  pickle.mark();

  pickle.mark();
  pickle.text("storage");
  if (type.dtype == nullptr) {
    pickle.global("torch", type.storage);
  } else {
    pickle.global("torch.storage", "UntypedStorage");
  }
  char digits[24];
  std::snprintf(digits, sizeof digits, "%zu", key);
  pickle.text(digits);
  pickle.text("cpu");
  pickle.integer(static_cast<int64_t>(
      type.dtype == nullptr ? image.bytes / element_bytes(image.type) : image.bytes));
  pickle.tuple();
  pickle.persistent_id();

  pickle.integer(0);
  pickle.mark();
  for (size_t d = 0; d < image.rank; ++d) pickle.integer(image.dims[d]);
  pickle.tuple();
  int64_t strides[kMaxDimensions];
  int64_t step = 1;
  for (size_t d = image.rank; d-- > 0;) {
    strides[d] = step;
    // Only a tensor without elements can overflow here, and then any stride does.
    if (image.dims[d] > 1 && __builtin_mul_overflow(step, image.dims[d], &step)) step = 1;
  }
  pickle.mark();
  for (size_t d = 0; d < image.rank; ++d) pickle.integer(strides[d]);
  pickle.tuple();
  pickle.no();
  pickle.global("collections", "OrderedDict");
  pickle.mark();
  pickle.tuple();
  pickle.reduce();
  if (type.dtype != nullptr) pickle.global("torch", type.dtype);

  pickle.tuple();
  pickle.reduce();
}

EncodeResult check(const TensorImage& image) {
  const TorchType type = torch_type(image.type);
  if (type.storage == nullptr && type.dtype == nullptr) return EncodeResult::kUnsupportedType;
  if (image.rank > kMaxDimensions) return EncodeResult::kTooManyDimensions;
  return is_consistent(image) ? EncodeResult::kOk : EncodeResult::kBadImage;
}

EncodeResult check(const NamedImage& named) {
  if (named.name_bytes >= kMax32) return EncodeResult::kBadName;
  for (size_t i = 0; i < named.name_bytes;) {
    const size_t length = utf8_length(named.name + i, named.name_bytes - i);
    if (length == 0) return EncodeResult::kBadName;
    i += length;
  }
  return check(named.image);
}

EncodeResult write_archive(const Pickle& pickle, const NamedImage* images, size_t count,
                           FileImage& file) {
  if (pickle.bytes().out_of_memory()) return EncodeResult::kNoMemory;
  // Readers look for data.pkl first; the folder's name is free.
  ZipWriter zip(file);
  zip.add("archive/data.pkl", pickle.bytes().data(), pickle.bytes().size());
  zip.add("archive/byteorder", "little", 6);
  for (size_t i = 0; i < count; ++i) {
    char name[40];
    std::snprintf(name, sizeof name, "archive/data/%zu", i);
    zip.add(name, nullptr, 0, images[i].image.data, images[i].image.bytes);
  }
  zip.add("archive/version", "3\n", 2);
  zip.finish();
  return zip.out_of_memory() ? EncodeResult::kNoMemory : EncodeResult::kOk;
}

}  // namespace

EncodeResult encode_torch(const TensorImage& image, FileImage& file) {
  if (const EncodeResult result = check(image); result != EncodeResult::kOk) return result;
  Pickle pickle;
  add_tensor(pickle, image, 0);
  pickle.stop();
  const NamedImage nameless{"", 0, image};
  return write_archive(pickle, &nameless, 1, file);
}

EncodeResult encode_torch_dict(const NamedImage* images, size_t count, FileImage& file) {
  for (size_t i = 0; i < count; ++i)
    if (const EncodeResult result = check(images[i]); result != EncodeResult::kOk) return result;
  Pickle pickle;
  pickle.empty_dict();
  pickle.mark();
  for (size_t i = 0; i < count; ++i) {
    pickle.text(images[i].name, images[i].name_bytes);
    add_tensor(pickle, images[i].image, i);
  }
  pickle.set_items();
  pickle.stop();
  return write_archive(pickle, images, count, file);
}

}  // namespace ait::record
