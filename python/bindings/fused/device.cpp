#include "fused/device.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace ait::python::fused {
namespace {

using ait::fused::Dim;
using ait::fused::kBlockBytes;
using ait::fused::kMaxBlocks;
using ait::fused::kMaxDims;
using ait::fused::kMaxItems;
using ait::fused::kThreads;
using ait::fused::Partial;
using ait::fused::Type;

constexpr size_t kMaxScratches = 4096;
constexpr unsigned kPortable = 1;        // CU_MEMHOSTALLOC_PORTABLE
constexpr unsigned kEventFlags = 1 | 2;  // CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING

std::unordered_map<int, std::unique_ptr<Device>>& devices() {
  static auto& all =
      *new std::unordered_map<int, std::unique_ptr<Device>>;  // outlives every thread
  return all;
}

std::optional<Type> kernel_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return Type::kBool;
    case DType::kInt8:
      return Type::kInt8;
    case DType::kUInt8:
      return Type::kUInt8;
    case DType::kInt16:
      return Type::kInt16;
    case DType::kUInt16:
      return Type::kUInt16;
    case DType::kInt32:
      return Type::kInt32;
    case DType::kUInt32:
      return Type::kUInt32;
    case DType::kInt64:
      return Type::kInt64;
    case DType::kUInt64:
      return Type::kUInt64;
    case DType::kFloat16:
    case DType::kComplex32:
      return Type::kFloat16;
    case DType::kBFloat16:
      return Type::kBFloat16;
    case DType::kFloat32:
    case DType::kComplex64:
      return Type::kFloat32;
    case DType::kFloat64:
    case DType::kComplex128:
      return Type::kFloat64;
    case DType::kFloat8E4M3FN:
      return Type::kFloat8E4M3FN;
    case DType::kFloat8E5M2:
      return Type::kFloat8E5M2;
    case DType::kFloat8E4M3FNUZ:
      return Type::kFloat8E4M3FNUZ;
    case DType::kFloat8E5M2FNUZ:
      return Type::kFloat8E5M2FNUZ;
    case DType::kFloat8E8M0FNU:
      return Type::kFloat8E8M0FNU;
    case DType::kInt4Packed:
    case DType::kFloat4Packed:
      break;
  }
  return std::nullopt;
}

// Dimensions by stride, each joined with the one before it where no gap lies between.
bool put_dims(const TensorView& tensor, bool pairs, Item& item) {
  std::array<Dim, kMaxRank + 1> dims;
  size_t count = 0;
  if (pairs) dims[count++] = {2, 1};
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] != 1)
      dims[count++] = {tensor.shape[i], tensor.strides[i] * (pairs ? 2 : 1)};
  std::sort(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(count),
            [](const Dim& one, const Dim& other) { return one.stride < other.stride; });
  size_t joined = 0;
  for (size_t i = 0; i < count; ++i) {
    if (joined > 0 && dims[joined - 1].size * dims[joined - 1].stride == dims[i].stride)
      dims[joined - 1].size *= dims[i].size;
    else
      dims[joined++] = dims[i];
  }
  if (joined == 0 || (joined == 1 && dims[0].stride == 1)) return true;
  if (joined > kMaxDims || item.elements > UINT32_MAX) return false;
  item.dims = static_cast<unsigned>(joined);
  std::copy_n(dims.begin(), joined, item.dim);
  return true;
}

struct Stretches {
  std::mutex mutex;
  std::vector<Result*> free;
};

Stretches& stretches() {
  static auto& all = *new Stretches;
  return all;
}

}  // namespace

std::optional<Item> item_of(const TensorView& tensor) {
  const auto type = kernel_type(tensor.dtype);
  if (!type || tensor.shape.size() > kMaxRank) return std::nullopt;
  const bool pairs = info(tensor.dtype).kind == DTypeKind::kComplex;
  Item item;
  item.data = tensor.data;
  item.elements = tensor.elements * (pairs ? 2 : 1);
  item.type = *type;
  item.dims = 0;
  const uint64_t blocks = (tensor.bytes() + kBlockBytes - 1) / kBlockBytes;
  item.blocks = static_cast<unsigned>(std::clamp<uint64_t>(blocks, 1, kMaxBlocks));
  if (!put_dims(tensor, pairs, item)) return std::nullopt;
  return item;
}

Device* Device::at(int index) {
  const auto found = devices().find(index);
  return found == devices().end() ? nullptr : found->second.get();
}

std::string Device::load(int index, const std::string& image) {
  if (at(index) != nullptr) return {};
  std::unique_ptr<Device> made(new Device);
  int number = 0;
  Status status = driver()->device_at(&number, index);
  if (status == 0) status = driver()->retain_primary(&made->context_, number);
  if (status != 0) return "the device cannot be used: " + error_text(status);
  const InContext current(made->context_);
  const CaptureRelaxed relaxed;
  Module module = nullptr;
  status = driver()->load_module(&module, image.data());
  if (status == 0) status = driver()->find_function(&made->function_, module, "ait_statistics");
  if (status != 0) return "the kernel cannot be loaded: " + error_text(status);
  constexpr size_t kCounterBytes = kMaxScratches * kMaxItems * sizeof(unsigned);
  status = driver()->allocate(&made->counters_, kCounterBytes);
  if (status == 0) status = driver()->fill(made->counters_, 0, kCounterBytes);
  if (status != 0) return "there is no memory on the device: " + error_text(status);
  devices()[index] = std::move(made);
  return {};
}

Scratch* Device::scratch(Stream stream, uint64_t capture) {
  for (const Used& used : scratches_)
    if (used.stream == stream && used.capture == capture) return used.scratch.get();
  if (scratches_.size() == kMaxScratches) return nullptr;
  DeviceMemory partials = 0;
  const CaptureRelaxed relaxed;
  if (driver()->allocate(&partials, sizeof(Partial) * kMaxBlocks * kMaxItems) != 0) return nullptr;
  const DeviceMemory counters = counters_ + scratches_.size() * kMaxItems * sizeof(unsigned);
  scratches_.push_back({stream, capture,
                        std::make_unique<Scratch>(Scratch{reinterpret_cast<Partial*>(partials),
                                                          reinterpret_cast<unsigned*>(counters)})});
  return scratches_.back().scratch.get();
}

std::optional<Mark> Device::mark(Stream stream) const {
  const InContext current(context_);
  Event event = nullptr;
  if (driver()->create_event(&event, kEventFlags) != 0) return std::nullopt;
  if (driver()->record_event(event, stream) == 0) return Mark{context_, event};
  driver()->destroy_event(event);
  return std::nullopt;
}

Result* Device::lasting_results(size_t count) const {
  const InContext current(context_);
  const CaptureRelaxed relaxed;
  DeviceMemory memory = 0;
  if (driver()->allocate(&memory, count * sizeof(Result)) != 0) return nullptr;
  return reinterpret_cast<Result*>(memory);
}

Status Device::copy_results(Result* to, const Result* from, size_t count, Stream stream) const {
  const InContext current(context_);
  return driver()->copy_to_host_async(to, reinterpret_cast<DeviceMemory>(from),
                                      count * sizeof(Result), stream);
}

Status Launch::add(Item item, Result* result) {
  Status status = 0;
  if (batch_.count == kMaxItems) status = now();
  item.result = result;
  batch_.item[batch_.count] = item;
  batch_.first[batch_.count + 1] = batch_.first[batch_.count] + item.blocks;
  ++batch_.count;
  return status;
}

Status Launch::now() {
  if (batch_.count == 0) return 0;
  const InContext current(device_.context_);
  Scratch* scratch = device_.scratch(stream_, capture_);
  constexpr Status kNoMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
  if (scratch == nullptr) return kNoMemory;
  for (unsigned i = 0; i < batch_.count; ++i) {
    batch_.item[i].partials = scratch->partials + size_t{i} * kMaxBlocks;
    batch_.item[i].counter = scratch->counters + i;
  }
  void* parameters[] = {&batch_};
  const Status status =
      driver()->launch(device_.function_, batch_.first[batch_.count], 1, 1, kThreads, 1, 1, 0,
                       stream_, parameters, nullptr);  // which copies the batch
  batch_.count = 0;
  return status;
}

Result* take_stretch(Context context) {
  {
    const std::lock_guard lock(stretches().mutex);
    if (auto& free = stretches().free; !free.empty()) {
      Result* taken = free.back();
      free.pop_back();
      return taken;
    }
  }
  const InContext current(context);
  const CaptureRelaxed relaxed;
  void* memory = nullptr;
  if (driver()->allocate_host(&memory, kStretch * sizeof(Result), kPortable) != 0) return nullptr;
  return static_cast<Result*>(memory);
}

void give_back_stretch(Result* stretch) {
  const std::lock_guard lock(stretches().mutex);
  stretches().free.push_back(stretch);
}

uint64_t capture_on(Stream stream) {
  int status = 0;
  uint64_t id = 0;
  constexpr int kActive = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE
  return driver()->capture_info(stream, &status, &id) == 0 && status == kActive ? id : 0;
}

Status wait(std::vector<Mark>& marks) {
  Status first = 0;
  for (const Mark& mark : marks) {
    const InContext current(mark.context);
    const Status status = driver()->wait_for_event(mark.event);
    if (first == 0) first = status;
    driver()->destroy_event(mark.event);
  }
  marks.clear();
  return first;
}

}  // namespace ait::python::fused
