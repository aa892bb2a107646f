// The few functions of the CUDA driver that launching our kernel takes, found in libcuda at run time: nothing of CUDA is
// needed to build or install ait. Types and numbers are those of cuda.h, which are fixed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ait::python::fused {

using Status = int;  // 0: all is well
using Context = void*;
using Module = void*;
using Function = void*;
using Stream = void*;
using Event = void*;
using DeviceMemory = unsigned long long;

struct Driver {
  Status (*initialize)(unsigned flags);
  Status (*device_at)(int* device, int index);
  Status (*retain_primary)(Context* context, int device);
  Status (*current)(Context* context);
  Status (*set_current)(Context context);
  Status (*load_module)(Module* module, const void* image);
  Status (*find_function)(Function* function, Module module, const char* name);
  Status (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream stream, void** parameters, void** extra);
  Status (*allocate_host)(void** memory, size_t bytes, unsigned flags);
  Status (*allocate)(DeviceMemory* memory, size_t bytes);
  Status (*fill)(DeviceMemory memory, unsigned char byte, size_t bytes);
  Status (*copy_to_host_async)(void* to, DeviceMemory from, size_t bytes, Stream stream);
  Status (*create_event)(Event* event, unsigned flags);
  Status (*record_event)(Event event, Stream stream);
  Status (*wait_for_event)(Event event);
  Status (*destroy_event)(Event event);
  // `id` is the same for all streams that take part in a capture, and never comes again.
  Status (*capture_info)(Stream stream, int* status, uint64_t* id);
  Status (*exchange_capture_mode)(int* mode);
  Status (*error_text)(Status status, const char** text);
};

// Null until open_driver() has succeeded.
const Driver* driver();

// What is missing, in words; empty if all is well. Once is enough.
std::string open_driver(const std::string& library);

// "out of memory"
std::string error_text(Status status);

// While a CUDA graph is captured, memory may be allocated in this thread.
class CaptureRelaxed {
 public:
  CaptureRelaxed() { driver()->exchange_capture_mode(&mode_); }
  ~CaptureRelaxed() { driver()->exchange_capture_mode(&mode_); }
  CaptureRelaxed(const CaptureRelaxed&) = delete;
  CaptureRelaxed& operator=(const CaptureRelaxed&) = delete;

 private:
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED
};

// Makes a device's context the thread's, for as long as a block lasts.
class InContext {
 public:
  explicit InContext(Context context) {
    driver()->current(&before_);
    changed_ = before_ != context;
    if (changed_) driver()->set_current(context);
  }
  ~InContext() {
    if (changed_) driver()->set_current(before_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  Context before_ = nullptr;
  bool changed_ = false;
};

}  // namespace ait::python::fused
