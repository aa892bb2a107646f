// torch's tensors as native code sees them, by questions that run no Python code: the extension is not built against
// torch, whose classes differ from version to version.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace ait::python::fused {

// What is used of the interface between array libraries (DLPack 1.3), which is the same for all of its versions 1.x.
namespace dlpack {

constexpr int32_t kCpu = 1, kCuda = 2;

struct Tensor {
  void* data;
  int32_t device_type, device;
  int32_t rank;
  uint32_t type;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

struct Exchange {
  uint32_t major, minor;
  const Exchange* older;
  void *allocate, *managed_from_object, *managed_to_object;
  int (*from_object)(void* object, Tensor* out);  // -1 with a Python error
  int (*current_stream)(int32_t device_type, int32_t device, void** out);
};

}  // namespace dlpack

// What there is to ask torch for. One in a process, made when recording begins.
class Torch {
 public:
  // `types` maps torch's dtypes to ait's names of them; `plain` are the classes whose tensors are nothing but tensors;
  // `exchange` is torch's table of functions for DLPack, or None: it answers several questions at once.
  static void set(nanobind::dict types, nanobind::tuple plain, nanobind::object tensor_base,
                  nanobind::object raw_stream, nanobind::object inference_mode,
                  nanobind::object exchange);
  static const Torch* get();

  // Of a class whose tensors can be looked at here, or of another one.
  bool is_plain(PyObject* value) const {
    return reinterpret_cast<PyObject*>(Py_TYPE(value)) == tensor_ ||
           reinterpret_cast<PyObject*>(Py_TYPE(value)) == parameter_;
  }
  bool is_tensor(PyObject* value) const {
    return PyObject_TypeCheck(value, reinterpret_cast<PyTypeObject*>(tensor_base_));
  }
  // Whether new tensors have no version counter. False if nobody can tell.
  bool in_inference_mode() const;
  // How often a tensor has been changed in place. -1 if nobody counts.
  int64_t version(PyObject* tensor) const;
  // Of the thread, on a device. Raises nothing: nullopt.
  std::optional<void*> current_stream(int device) const;

 private:
  friend class TensorFacts;

  PyObject* call(PyObject* method, PyObject* tensor) const;
  PyObject* get(PyObject* property, PyObject* tensor) const;

  descrgetfunc descriptor_get_ = nullptr;
  PyObject* tensor_ = nullptr;
  PyObject* parameter_ = nullptr;
  PyObject* tensor_base_ = nullptr;
  PyObject* raw_stream_ = nullptr;  // null without CUDA
  PyObject* inference_mode_ = nullptr;
  PyObject *data_ptr_ = nullptr, *stride_ = nullptr, *is_contiguous_ = nullptr,
           *get_device_ = nullptr, *is_neg_ = nullptr, *is_conj_ = nullptr;
  PyObject *dtype_ = nullptr, *shape_ = nullptr, *version_ = nullptr, *is_cpu_ = nullptr,
           *is_cuda_ = nullptr;
  std::vector<std::pair<PyObject*, DType>> types_;
  const dlpack::Exchange* exchange_ = nullptr;
};

// Of one tensor.
class TensorFacts {
 public:
  enum class Place : uint8_t { kCpu, kCuda, kElsewhere };

  // False if it is none that can be looked at here; then nothing else is known, and no Python error is set.
  bool read(const Torch& torch, PyObject* tensor);
  // Only what tells that a tensor that was read before is where it was, and has the shape that it had.
  bool read_place(const Torch& torch, PyObject* tensor);

  DType dtype() const { return dtype_; }
  Place place() const { return place_; }
  int device() const { return device_; }
  uintptr_t address() const { return address_; }
  std::span<const int64_t> shape() const { return {shape_.data(), rank_}; }
  TensorView view() const;
  size_t elements() const { return elements_; }

 private:
  bool read_numbers(PyObject* tuple, int64_t* to);
  bool read_by_exchange(const Torch& torch, PyObject* tensor);
  bool read_strides_and_device(const Torch& torch, PyObject* tensor);

  static constexpr size_t kMaxDimensions = kMaxRank;

  DType dtype_ = DType::kUInt8;
  Place place_ = Place::kElsewhere;
  int device_ = -1;
  uintptr_t address_ = 0;
  bool complete_ = false;  // strides and device are known, too
  size_t rank_ = 0;
  size_t elements_ = 1;
  std::array<int64_t, kMaxDimensions> shape_;
  std::array<int64_t, kMaxDimensions> strides_;
};

}  // namespace ait::python::fused
