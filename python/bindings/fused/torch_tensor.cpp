#include "fused/torch_tensor.h"

#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "operand.h"

namespace nb = nanobind;

namespace ait::python::fused {
namespace {

Torch* the_only = nullptr;

PyObject* attribute(nb::handle of, const char* name) {
  return nb::object(of.attr(name)).release().ptr();
}

// Takes what a question was answered; -1 and no error where it was not.
bool is_true(PyObject* answer) {
  const bool yes = answer == Py_True;
  if (answer == nullptr) PyErr_Clear();
  Py_XDECREF(answer);
  return yes;
}

// torch's properties are all of one type.
descrgetfunc descriptor_get(PyTypeObject* type) {
#if defined(Py_LIMITED_API)
  return reinterpret_cast<descrgetfunc>(PyType_GetSlot(type, Py_tp_descr_get));
#else
  return type->tp_descr_get;
#endif
}

// Null where it is of another version than the one that is known here.
const dlpack::Exchange* exchange_of(nb::handle capsule) {
  void* pointer = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  if (pointer == nullptr) PyErr_Clear();
  const auto* found = static_cast<const dlpack::Exchange*>(pointer);
  while (found != nullptr && found->major > 1) found = found->older;
  const bool fits = found != nullptr && found->major == 1 && found->minor >= 3 &&
                    found->from_object != nullptr && found->current_stream != nullptr;
  return fits ? found : nullptr;
}

}  // namespace

void Torch::set(nb::dict types, nb::tuple plain, nb::object tensor_base, nb::object raw_stream,
                nb::object inference_mode, nb::object exchange) {
  if (the_only != nullptr) return;
  auto made = std::make_unique<Torch>();
  made->tensor_ = nb::object(plain[0]).release().ptr();
  made->parameter_ = nb::object(plain[1]).release().ptr();
  made->data_ptr_ = attribute(tensor_base, "data_ptr");
  made->stride_ = attribute(tensor_base, "stride");
  made->is_contiguous_ = attribute(tensor_base, "is_contiguous");
  made->get_device_ = attribute(tensor_base, "get_device");
  made->is_neg_ = attribute(tensor_base, "is_neg");
  made->is_conj_ = attribute(tensor_base, "is_conj");
  made->dtype_ = attribute(tensor_base, "dtype");
  made->shape_ = attribute(tensor_base, "shape");
  made->version_ = attribute(tensor_base, "_version");
  made->is_cpu_ = attribute(tensor_base, "is_cpu");
  made->is_cuda_ = attribute(tensor_base, "is_cuda");
  made->descriptor_get_ = descriptor_get(Py_TYPE(made->dtype_));
  for (PyObject* property : {made->shape_, made->version_, made->is_cpu_, made->is_cuda_})
    if (Py_TYPE(property) != Py_TYPE(made->dtype_))
      throw nb::type_error("the properties of this torch's tensors are of several kinds");
  made->tensor_base_ = tensor_base.release().ptr();
  if (!raw_stream.is_none()) made->raw_stream_ = raw_stream.release().ptr();
  if (!inference_mode.is_none()) made->inference_mode_ = inference_mode.release().ptr();
  if (!exchange.is_none()) made->exchange_ = exchange_of(exchange);
  for (const auto& [type, name] : types)
    made->types_.emplace_back(nb::object(nb::borrow(type)).release().ptr(),
                              dtype_named(nb::cast<std::string>(name)));
  the_only = made.release();  // for as long as the process lives
}

const Torch* Torch::get() { return the_only; }

PyObject* Torch::call(PyObject* method, PyObject* tensor) const {
  PyObject* arguments[] = {tensor};
  return PyObject_Vectorcall(method, arguments, 1, nullptr);
}

PyObject* Torch::get(PyObject* property, PyObject* tensor) const {
  return descriptor_get_(property, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor)));
}

bool Torch::in_inference_mode() const {
  return inference_mode_ != nullptr && is_true(PyObject_CallNoArgs(inference_mode_));
}

int64_t Torch::version(PyObject* tensor) const {
  PyObject* version = get(version_, tensor);
  if (version == nullptr) return PyErr_Clear(), -1;
  const int64_t number = PyLong_AsLongLong(version);
  Py_DECREF(version);
  return number;
}

std::optional<void*> Torch::current_stream(int device) const {
  if (raw_stream_ == nullptr) return std::nullopt;
  if (exchange_ != nullptr) {
    void* stream = nullptr;
    if (exchange_->current_stream(dlpack::kCuda, device, &stream) == 0) return stream;
    PyErr_Clear();
    return std::nullopt;
  }
  PyObject* index = PyLong_FromLong(device);
  if (index == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  PyObject* stream = call(raw_stream_, index);
  Py_DECREF(index);
  if (stream == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  void* pointer = PyLong_AsVoidPtr(stream);
  Py_DECREF(stream);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return pointer;
}

bool TensorFacts::read_numbers(PyObject* tuple, int64_t* to) {
  if (tuple == nullptr) {
    PyErr_Clear();
    return false;
  }
  bool good =
      PyTuple_Check(tuple) && PyTuple_Size(tuple) <= static_cast<Py_ssize_t>(kMaxDimensions);
  for (Py_ssize_t i = 0; good && i < PyTuple_Size(tuple); ++i) {
    to[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    good = PyErr_Occurred() == nullptr;
  }
  if (good) rank_ = static_cast<size_t>(PyTuple_Size(tuple));
  PyErr_Clear();
  Py_DECREF(tuple);
  return good;
}

// Everything but the type, where DLPack has words for the tensor.
bool TensorFacts::read_by_exchange(const Torch& torch, PyObject* tensor) {
  dlpack::Tensor found;
  if (torch.exchange_->from_object(tensor, &found) != 0) return PyErr_Clear(), false;
  if (found.rank < 0 || found.rank > static_cast<int32_t>(kMaxDimensions)) return false;
  rank_ = static_cast<size_t>(found.rank);
  address_ = reinterpret_cast<uintptr_t>(found.data) + found.byte_offset;
  for (size_t i = rank_; i-- > 0;) {
    shape_[i] = found.shape[i];
    // That of a dimension of one element is anything.
    const int64_t step = i + 1 < rank_ ? strides_[i + 1] * shape_[i + 1] : 1;
    strides_[i] = shape_[i] == 1 ? step : found.strides[i];
  }
  device_ = found.device;
  place_ = found.device_type == dlpack::kCpu    ? Place::kCpu
           : found.device_type == dlpack::kCuda ? Place::kCuda
                                                : Place::kElsewhere;
  return true;
}

bool TensorFacts::read_place(const Torch& torch, PyObject* tensor) {
  complete_ = torch.exchange_ != nullptr && read_by_exchange(torch, tensor);
  if (complete_) return true;
  // Tensors without memory of their own (sparse ones, those inside vmap) raise an error here, nested ones below.
  PyObject* address = torch.call(torch.data_ptr_, tensor);
  if (address == nullptr) return PyErr_Clear(), false;
  address_ = static_cast<uintptr_t>(PyLong_AsUnsignedLongLongMask(address));
  Py_DECREF(address);
  return read_numbers(torch.get(torch.shape_, tensor), shape_.data());
}

bool TensorFacts::read_strides_and_device(const Torch& torch, PyObject* tensor) {
  const bool contiguous = elements_ == 0 || is_true(torch.call(torch.is_contiguous_, tensor));
  if (contiguous) {
    int64_t step = 1;
    for (size_t i = rank_; i-- > 0; step *= shape_[i]) strides_[i] = step;
  } else if (!read_numbers(torch.call(torch.stride_, tensor), strides_.data())) {
    return false;
  }
  if (is_true(torch.get(torch.is_cuda_, tensor))) {
    PyObject* device = torch.call(torch.get_device_, tensor);
    if (device == nullptr) return PyErr_Clear(), false;
    device_ = static_cast<int>(PyLong_AsLong(device));
    Py_DECREF(device);
    place_ = Place::kCuda;
  } else {
    place_ = is_true(torch.get(torch.is_cpu_, tensor)) ? Place::kCpu : Place::kElsewhere;
  }
  return true;
}

bool TensorFacts::read(const Torch& torch, PyObject* tensor) {
  PyObject* type = torch.get(torch.dtype_, tensor);
  if (type == nullptr) return PyErr_Clear(), false;
  Py_DECREF(type);  // types live as long as torch
  bool known = false;
  for (const auto& [each, dtype] : torch.types_)
    if (each == type) {
      dtype_ = dtype;
      known = true;
      break;
    }
  if (!known) return false;
  if (!read_place(torch, tensor)) return false;
  elements_ = 1;
  for (size_t i = 0; i < rank_; ++i) elements_ *= static_cast<size_t>(shape_[i]);
  if (address_ == 0 && elements_ > 0) return false;
  if (is_true(torch.call(torch.is_neg_, tensor))) return false;
  if (info(dtype_).kind == DTypeKind::kComplex && is_true(torch.call(torch.is_conj_, tensor)))
    return false;
  return complete_ || read_strides_and_device(torch, tensor);
}

TensorView TensorFacts::view() const {
  return {dtype_,
          shape(),
          {strides_.data(), rank_},
          reinterpret_cast<const std::byte*>(address_),
          elements_};
}

}  // namespace ait::python::fused
