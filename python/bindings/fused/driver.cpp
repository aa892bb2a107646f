#include "fused/driver.h"

#include <dlfcn.h>

namespace ait::python::fused {
namespace {

Driver functions;
bool opened = false;

template <typename Signature>
bool find(void* library, const char* name, Signature*& to, std::string& missing) {
  to = reinterpret_cast<Signature*>(::dlsym(library, name));
  if (to == nullptr && missing.empty()) missing = name;
  return to != nullptr;
}

}  // namespace

const Driver* driver() { return opened ? &functions : nullptr; }

std::string open_driver(const std::string& library) {
  if (opened) return {};
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = ::dlerror();
    return words == nullptr ? library + " cannot be loaded" : words;
  }
  std::string missing;
  Driver& to = functions;
  find(handle, "cuInit", to.initialize, missing);
  find(handle, "cuDeviceGet", to.device_at, missing);
  find(handle, "cuDevicePrimaryCtxRetain", to.retain_primary, missing);
  find(handle, "cuCtxGetCurrent", to.current, missing);
  find(handle, "cuCtxSetCurrent", to.set_current, missing);
  find(handle, "cuModuleLoadData", to.load_module, missing);
  find(handle, "cuModuleGetFunction", to.find_function, missing);
  find(handle, "cuLaunchKernel", to.launch, missing);
  find(handle, "cuMemHostAlloc", to.allocate_host, missing);
  find(handle, "cuMemAlloc_v2", to.allocate, missing);
  find(handle, "cuMemsetD8_v2", to.fill, missing);
  find(handle, "cuMemcpyDtoHAsync_v2", to.copy_to_host_async, missing);
  find(handle, "cuEventCreate", to.create_event, missing);
  find(handle, "cuEventRecord", to.record_event, missing);
  find(handle, "cuEventSynchronize", to.wait_for_event, missing);
  find(handle, "cuEventDestroy_v2", to.destroy_event, missing);
  find(handle, "cuStreamGetCaptureInfo", to.capture_info, missing);
  find(handle, "cuThreadExchangeStreamCaptureMode", to.exchange_capture_mode, missing);
  find(handle, "cuGetErrorString", to.error_text, missing);
  if (!missing.empty()) return library + " has no " + missing;
  if (const Status status = to.initialize(0); status != 0)
    return "cuInit failed with " + std::to_string(status);
  opened = true;
  return {};
}

std::string error_text(Status status) {
  const char* text = nullptr;
  if (opened) functions.error_text(status, &text);
  return text == nullptr ? "error " + std::to_string(status) : text;
}

}  // namespace ait::python::fused
