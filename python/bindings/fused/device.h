// Our kernel on the CUDA devices of this process: memory for its results, its launches, and when they are done.
//
//   Launch launch(*Device::at(0), stream);
//   Result* result = results.take();
//   launch.add(item_of(view), result);      // launched when eight have come together
//   launch.now();                           // or when nothing may come between
//   …
//   std::vector<Mark> marks = …;            // Device::mark(stream), behind the last launch
//   wait(marks);                            // in any thread; *result holds the numbers
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fused/driver.h"
#include "kernel/statistics.h"
#include "tensor/tensor.h"

namespace ait::python::fused {

using ait::fused::Batch;
using ait::fused::Item;
using ait::fused::Result;

// What the kernel is to read, without its result; nothing where it cannot: a type that it does not know, or a shape with
// too many gaps. The order of dimensions is of no matter to statistics, so that a transposed tensor is read like a plain
// one. Complex numbers are read as pairs of real ones.
std::optional<Item> item_of(const TensorView& tensor);

// Where launches on one stream keep what their blocks have found. Two launches that may run at the same time must not
// have the same: those of different streams, and those that different graphs were captured of.
struct Scratch {
  ait::fused::Partial* partials;
  unsigned* counters;
};

// A place in a stream.
struct Mark {
  Context context;
  Event event;
};

class Device {
 public:
  // Null where the kernel was not loaded.
  static Device* at(int index);
  // What went wrong, in words; empty if all is well.
  static std::string load(int index, const std::string& image);

  Context context() const { return context_; }
  std::optional<Mark> mark(Stream stream) const;
  // Memory on the device that is never freed: a graph may be replayed at any time. Null if there is none.
  Result* lasting_results(size_t count) const;
  Status copy_results(Result* to, const Result* from, size_t count, Stream stream) const;

 private:
  friend class Launch;
  Device() = default;

  Scratch* scratch(Stream stream, uint64_t capture);

  Context context_ = nullptr;
  Function function_ = nullptr;
  DeviceMemory counters_ = 0;  // all 0; cut up into scratches
  struct Used {
    Stream stream;
    uint64_t capture;
    std::unique_ptr<Scratch> scratch;
  };
  std::vector<Used> scratches_;
};

// Tensors on their way into one launch. Not launched: forgotten.
class Launch {
 public:
  Launch(Device& device, Stream stream, uint64_t capture)
      : device_(device), stream_(stream), capture_(capture) {
    batch_.count = 0;
    batch_.first[0] = 0;
  }

  Device& device() const { return device_; }
  Stream stream() const { return stream_; }
  uint64_t capture() const { return capture_; }
  Status add(Item item, Result* result);
  Status now();

 private:
  Device& device_;
  const Stream stream_;
  const uint64_t capture_;  // 0 outside of captures
  Batch batch_;
};

// Page-locked memory, which the kernel writes to and the host reads: stretches of kStretch results. Any thread.
constexpr size_t kStretch = 512;
Result* take_stretch(Context context);  // null if there is none
void give_back_stretch(Result* stretch);

// The capture that a stream takes part in; 0 if there is none.
uint64_t capture_on(Stream stream);

// Waits until the device has come there; frees the marks. The first thing that went wrong.
Status wait(std::vector<Mark>& marks);

}  // namespace ait::python::fused
