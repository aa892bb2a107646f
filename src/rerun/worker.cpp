// ait-rerun PLUGIN: loads the plug-in and runs the operations that ait asks for.
#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "base/checked.h"
#include "formats/acl_types.h"
#include "rerun/block.h"

namespace ait::rerun {
namespace {

// A mapping that goes at the end of a question.
class Mapping {
 public:
  Mapping(int file, uint64_t offset, uint64_t bytes) : bytes_(bytes) {
    void* found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                         static_cast<off_t>(offset));
    if (found != MAP_FAILED) data_ = static_cast<std::byte*>(found);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t bytes_;
};

template <size_t kSize>
void put(std::array<char, kSize>& to, std::string_view text) {
  const size_t bytes = std::min(text.size(), kSize - 1);
  std::memcpy(to.data(), text.data(), bytes);
  to[bytes] = 0;
}

int failed(Block& block, std::string_view why) {
  put(block.message, why);
  return AIT_RERUN_FAILED;
}

class Worker {
 public:
  int load(const char* path, Block& block) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return failed(block, ::dlerror());
    const auto entry =
        reinterpret_cast<decltype(&ait_rerun_plugin)>(::dlsym(library, "ait_rerun_plugin"));
    if (entry == nullptr)
      return failed(block, "is not a plug-in for -rerun: it has no function ait_rerun_plugin");
    const AitRerunPlugin* plugin = entry();
    if (plugin == nullptr)
      return failed(block, "is not a plug-in for -rerun: ait_rerun_plugin returns NULL");
    if (plugin->abi != AIT_RERUN_ABI)
      return failed(block, "is a plug-in of version " + std::to_string(plugin->abi) +
                               " of the interface, but ait needs " + std::to_string(AIT_RERUN_ABI) +
                               "; build it anew with the rerun/plugin.h of this ait");
    if (plugin->infer == nullptr || plugin->run == nullptr)
      return failed(block, "is a plug-in without infer or run");
    put(block.library, plugin->library == nullptr ? "" : plugin->library);
    plugin_ = plugin;
    return AIT_RERUN_OK;
  }

  int run(int file, Block& block) const {
    std::vector<AitRerunTensor> inputs, outputs(kMaxTensors);
    for (uint32_t i = 0; i < block.input_count; ++i) {
      AitRerunTensor& input = inputs.emplace_back(block.inputs[i].tensor);
      input.data = reinterpret_cast<std::byte*>(&block) + block.inputs[i].offset_bytes;
      if (input.is_given == 0) input.data = nullptr;
    }
    AitRerunCall call{};
    call.operation = block.type.data();
    call.param = block.param.data();
    call.device = block.device;
    call.input_count = block.input_count;
    call.inputs = inputs.data();
    call.output_capacity = kMaxTensors;
    call.outputs = outputs.data();
    call.message = block.message.data();
    call.message_bytes = block.message.size();
    if (const int status = plugin_->infer(&call); status != AIT_RERUN_OK) return status;
    if (call.output_count > kMaxTensors) return failed(block, "names too many outputs");

    struct stat status{};
    if (::fstat(file, &status) != 0) return failed(block, std::strerror(errno));
    const auto first = static_cast<uint64_t>(status.st_size);  // a multiple of the page's size
    uint64_t end = first;
    if (const int placed = place(call, block, end); placed != AIT_RERUN_OK) return placed;
    const uint64_t bytes = end - first;
    if (bytes > 0 && ::ftruncate(file, static_cast<off_t>(end)) != 0)
      return failed(block, std::string("has no memory for its outputs: ") + std::strerror(errno));
    const Mapping memory(file, first, std::max<uint64_t>(bytes, 1));
    if (bytes > 0 && memory.data() == nullptr)
      return failed(block, "has no memory for its outputs");
    for (uint32_t i = 0; i < call.output_count; ++i)
      outputs[i].data = memory.data() + (block.outputs[i].offset_bytes - first);
    return plugin_->run(&call);
  }

 private:
  // Puts the outputs behind `end`, as they are described before the plug-in has had their memory.
  static int place(const AitRerunCall& call, Block& block, uint64_t& end) {
    block.output_count = call.output_count;
    for (uint32_t i = 0; i < call.output_count; ++i) {
      AitRerunTensor& output = call.outputs[i];
      const formats::AclType* type = formats::find_acl_type(output.dtype);
      if (type == nullptr || !type->dtype)
        return failed(block, "gives an output of a type that ait does not know: " +
                                 std::to_string(output.dtype));
      if (output.rank < 0 || output.rank > AIT_RERUN_MAX_RANK)
        return failed(block, "gives an output of " + std::to_string(output.rank) + " dimensions");
      std::optional<uint64_t> bytes = size_bytes(*type->dtype);
      for (int32_t d = 0; bytes && d < output.rank; ++d)
        bytes = output.dims[d] < 0 ? std::nullopt
                                   : checked_mul(*bytes, static_cast<uint64_t>(output.dims[d]));
      if (!bytes || *bytes > block.memory_bytes || aligned(*bytes) > block.memory_bytes - end)
        return failed(block, "gives outputs that need more than the " +
                                 std::to_string(block.memory_bytes >> 20) +
                                 " MiB that they may take; give it more with --memory");
      output.bytes = *bytes;
      output.is_given = 1;
      block.outputs[i] = {output, end};
      end += aligned(*bytes);
    }
    return AIT_RERUN_OK;
  }

  const AitRerunPlugin* plugin_ = nullptr;
};

// The file of the next question, or -1 where ait has gone.
int receive() {
  FileMessage message;
  ssize_t got = 0;
  while ((got = ::recvmsg(kSocket, &message.header, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
  if (header == nullptr) return -1;
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

// Ends a process whose plug-in is still at work when ait has gone: nobody else would end one that
// hangs.
std::atomic<bool> busy = false;
void watch() {
  pollfd gone{kSocket, 0, 0};  // that the other end is closed is always told
  while (::poll(&gone, 1, -1) < 0 && errno == EINTR) {
  }
  if (busy) std::_Exit(1);
}

int serve(const char* plugin) {
  std::thread(watch).detach();
  Worker worker;
  for (int file; (file = receive()) >= 0; ::close(file)) {
    struct stat status{};
    if (::fstat(file, &status) != 0) return 1;
    const Mapping memory(file, 0, static_cast<uint64_t>(status.st_size));
    if (memory.data() == nullptr) return 1;
    auto& block = *reinterpret_cast<Block*>(memory.data());
    busy = true;
    try {
      block.answer =
          block.question == Block::kLoad ? worker.load(plugin, block) : worker.run(file, block);
    } catch (...) {
      block.answer = failed(block, "has thrown an exception");
    }
    busy = false;
    const char byte = 0;
    if (::send(kSocket, &byte, 1, MSG_NOSIGNAL) != 1) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace ait::rerun

int main(int count, char** words) {
  if (count != 2) {
    std::fputs("ait-rerun is started by `ait llm opcheck -rerun`\n", stderr);
    return 2;
  }
  try {
    return ait::rerun::serve(words[1]);
  } catch (const std::exception& error) {  // no thread could be started
    std::fprintf(stderr, "ait-rerun: %s\n", error.what());
    return 2;
  }
}
