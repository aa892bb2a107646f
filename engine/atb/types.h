// The plain types of the acceleration library: tensors, what is passed to an operation, and how one
// fails.
//
// Names follow ATB where a program that knows ATB would look for them; codes of element types and
// formats are ACL's, because they end up in dump files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

// What the library shows to programs; everything else stays inside. No -Bsymbolic anywhere: a
// preloaded probe must be able to take the place of these symbols.
#define AIT_ATB_API __attribute__((visibility("default")))

namespace atb {

// aclDataType. Only the types that some operation takes.
enum class DataType : uint8_t {
  kFloat = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt32 = 3,
  kInt64 = 9,
  kUInt64 = 10,
  kBool = 12,
  kBf16 = 27,
};

// aclFormat: nd is the only layout this library knows.
inline constexpr int kFormatNd = 2;

AIT_ATB_API size_t element_bytes(DataType dtype);
AIT_ATB_API bool is_floating(DataType dtype);
// "float", "float16", "bf16", …: as the tables of a dump spell it.
AIT_ATB_API const char* data_type_name(DataType dtype);
// The DataType of a code from outside; false for codes this library does not know.
AIT_ATB_API bool data_type_from_code(int64_t code, DataType& dtype);

// At most eight dimensions, by value and without allocation.
class AIT_ATB_API Dims {
 public:
  static constexpr size_t kMax = 8;

  Dims() = default;
  Dims(std::initializer_list<int64_t> sizes) {
    for (const int64_t size : sizes) push_back(size);
  }

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  int64_t& operator[](size_t i) { return sizes_[i]; }
  int64_t operator[](size_t i) const { return sizes_[i]; }
  int64_t back() const { return sizes_[count_ - 1]; }
  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + count_; }
  // Dimensions beyond the eighth are ignored; callers check size() first where they can occur.
  void push_back(int64_t size) {
    if (count_ < kMax) sizes_[count_++] = size;
  }
  bool operator==(const Dims& other) const {
    return count_ == other.count_ && std::equal(begin(), end(), other.begin());
  }

  // Product of all dimensions, and of those from `first` on.
  int64_t count(size_t first = 0) const {
    int64_t product = 1;
    for (size_t i = first; i < count_; ++i) product *= sizes_[i];
    return product;
  }
  std::string text() const;  // "2,3"

 private:
  std::array<int64_t, kMax> sizes_{};
  size_t count_ = 0;
};

struct TensorDesc {
  DataType dtype = DataType::kFloat;
  Dims dims;

  bool operator==(const TensorDesc&) const = default;
  uint64_t bytes() const { return static_cast<uint64_t>(dims.count()) * element_bytes(dtype); }
};

// Row-major without gaps; the memory belongs to whoever made it.
struct Tensor {
  TensorDesc desc;
  void* data = nullptr;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

struct VariantPack {
  std::vector<Tensor> inTensors;
  std::vector<Tensor> outTensors;
};

// ATB's error numbers, those that can occur here.
enum class ErrorType : uint8_t {
  kNoError = 0,
  kInvalidParam = 1,
  kInvalidGraph = 2,
  kRtFail = 4,  // an overflow that the probe asked to stop at, or a peer that is gone
  kInvalidTensor = 5,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorType code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorType::kNoError; }
  ErrorType code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorType code_ = ErrorType::kNoError;
  std::string message_;
};

inline Status invalid_tensor(std::string message) {
  return {ErrorType::kInvalidTensor, std::move(message)};
}
inline Status invalid_param(std::string message) {
  return {ErrorType::kInvalidParam, std::move(message)};
}

}  // namespace atb
