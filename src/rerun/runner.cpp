#include "rerun/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/checked.h"
#include "base/memory.h"
#include "formats/acl_types.h"
#include "rerun/block.h"

namespace ait::rerun {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kEnginePlugin = "libait_rerun_engine.so";
constexpr const char* kWorker = "ait-rerun";
constexpr int32_t kFormatNd = 2;
constexpr int32_t kFormatFractalNz = 29;
// A plug-in may have a device to let go of before it ends.
constexpr std::chrono::seconds kFarewell{3};

// Beside the program, as the probe is.
std::string installed(const char* name) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / "lib" / "ait" / name).native();
}

uint64_t page_bytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE)); }

// Text that another process has written.
template <size_t kSize>
std::string text_of(const std::array<char, kSize>& from) {
  return printable({from.data(), ::strnlen(from.data(), kSize)}, kSize);
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

// A block and its file. Tensors of an outcome keep it alive.
class Runner::Shared {
 public:
  // At least as many bytes as asked for, all of them zero.
  static Result<std::shared_ptr<Shared>> create(uint64_t bytes) {
    const int file = ::memfd_create("ait_rerun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    auto shared = std::shared_ptr<Shared>(new Shared(file));
    // Nobody can take away what is mapped here.
    if (file < 0 ||
        ::ftruncate(file, static_cast<off_t>(std::max(bytes, uint64_t{sizeof(Block)}))) != 0 ||
        ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0 || !shared->map())
      return fail(Error(ErrorCode::kUnwritable)
                  << "there is no memory to run operations in: " << system_message(errno));
    return shared;
  }
  ~Shared() {
    unmap();
    if (file_ >= 0) ::close(file_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Block& block() const { return *reinterpret_cast<Block*>(data_); }
  std::byte* data() const { return data_; }
  int file() const { return file_; }

  // All that the file now holds.
  bool map() {
    unmap();
    struct stat status{};
    if (::fstat(file_, &status) != 0) return false;
    bytes_ = static_cast<uint64_t>(status.st_size);
    void* mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (mapped == MAP_FAILED) return false;
    data_ = static_cast<std::byte*>(mapped);
    return true;
  }

  // One that the other process has described, so nothing of it is to be trusted.
  static Result<Tensor> tensor(const std::shared_ptr<Shared>& self, const BlockTensor& from) {
    const formats::AclType* type = formats::find_acl_type(from.tensor.dtype);
    const auto rank = static_cast<size_t>(from.tensor.rank);
    if (type == nullptr || !type->dtype || rank > AIT_RERUN_MAX_RANK ||
        !range_fits(from.offset_bytes, from.tensor.bytes, self->bytes_))
      return fail(Error(ErrorCode::kCorrupt) << "has written over the description of its outputs");
    return Tensor::contiguous(self, {self->data_ + from.offset_bytes, from.tensor.bytes},
                              *type->dtype, Shape(from.tensor.dims, from.tensor.dims + rank));
  }

 private:
  explicit Shared(int file) : file_(file) {}
  void unmap() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
    data_ = nullptr;
  }

  int file_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

namespace {

// Where the inputs will lie behind the head of a block; what is wrong with them is said in words.
struct Layout {
  std::vector<BlockTensor> inputs;
  uint64_t bytes = aligned(sizeof(Block));
  std::string problem;
};

Layout layout_of(const Call& call) {
  Layout out;
  if (call.inputs.size() > kMaxTensors || call.type.size() > kMaxTypeBytes ||
      call.param.size() > kMaxParamBytes) {
    out.problem = "it has more inputs or longer parameters than any operation";
    return out;
  }
  for (const auto& input : call.inputs) {
    BlockTensor& to = out.inputs.emplace_back();
    to.offset_bytes = out.bytes;
    if (!input) continue;
    const Tensor& tensor = input->tensor;
    const auto code = formats::acl_code(tensor.dtype());
    if (!code || info(tensor.dtype()).kind == DTypeKind::kPacked ||
        tensor.shape().size() > AIT_RERUN_MAX_RANK) {
      out.problem = fmt::format("an input of type {} and shape {} cannot be given to it",
                                name(tensor.dtype()), shape_text(tensor.shape()));
      return out;
    }
    to.tensor.dtype = *code;
    to.tensor.format = input->fractal ? kFormatFractalNz : kFormatNd;
    to.tensor.rank = static_cast<int32_t>(tensor.shape().size());
    to.tensor.is_given = 1;
    std::copy(tensor.shape().begin(), tensor.shape().end(), to.tensor.dims);
    to.tensor.bytes = tensor.view().bytes();
    out.bytes += aligned(to.tensor.bytes);
  }
  const uint64_t page = page_bytes();
  out.bytes = (out.bytes + page - 1) / page * page;
  return out;
}

}  // namespace

std::string default_plugin() {
  const char* given = std::getenv("AIT_OPCHECK_LIB_PATH");
  return given != nullptr && *given != 0 ? given : installed(kEnginePlugin);
}

Result<std::unique_ptr<Runner>> Runner::start(Settings settings) {
  if (settings.plugin.empty()) settings.plugin = default_plugin();
  if (settings.worker.empty()) settings.worker = installed(kWorker);
  if (settings.memory_bytes == 0) settings.memory_bytes = machine_memory_bytes() / 4;
  std::error_code ignored;
  // The loader would look a bare name up among its own libraries.
  settings.plugin = fs::absolute(settings.plugin, ignored).native();
  for (const std::string* path : {&settings.plugin, &settings.worker})
    if (!fs::is_regular_file(*path, ignored))
      return fail(Error(ErrorCode::kNotFound, *path)
                  << "rerun library not found; give --rerun-plugin the plug-in to run operations "
                     "with, or install ait again");
  auto runner = std::unique_ptr<Runner>(new Runner(std::move(settings)));
  if (auto loaded = runner->load(); !loaded) return fail(loaded.error());
  return runner;
}

Runner::~Runner() { end_worker(); }

Error Runner::error(ErrorCode code) const { return Error(code, settings_.plugin); }

Result<void> Runner::load() {
  if (auto started = start_worker(); !started) return started;
  auto shared = Shared::create(sizeof(Block));
  if (!shared) return fail(shared.error());
  Block& block = (*shared)->block();
  block.question = Block::kLoad;
  if (auto asked = ask(**shared); !asked) return asked;
  if (block.answer != AIT_RERUN_OK) {
    end_worker();
    return fail(error() << text_of(block.message));
  }
  library_ = text_of(block.library);
  return {};
}

Result<Outcome> Runner::run(const Call& call) {
  const Layout layout = layout_of(call);
  if (!layout.problem.empty()) return fail(error(ErrorCode::kUnsupported) << layout.problem);
  if (layout.bytes > settings_.memory_bytes)
    return fail(error() << "the inputs need " << mebibytes(layout.bytes) << ", more than the "
                        << mebibytes(settings_.memory_bytes)
                        << " that they may take; give it more with --memory");
  const std::lock_guard lock(mutex_);
  if (worker_ < 0)
    if (auto loaded = load(); !loaded) return fail(loaded.error());
  auto created = Shared::create(layout.bytes);
  if (!created) return fail(created.error());
  const std::shared_ptr<Shared>& shared = *created;
  {
    Block& block = shared->block();
    block.question = Block::kRun;
    block.device = settings_.device;
    block.memory_bytes = settings_.memory_bytes;
    block.input_count = static_cast<uint32_t>(layout.inputs.size());
    std::copy(call.type.begin(), call.type.end(), block.type.begin());
    std::copy(call.param.begin(), call.param.end(), block.param.begin());
    std::copy(layout.inputs.begin(), layout.inputs.end(), block.inputs.begin());
  }
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i])
      gather(call.inputs[i]->tensor.view(), 0, call.inputs[i]->tensor.elements(),
             shared->data() + layout.inputs[i].offset_bytes);
  if (auto asked = ask(*shared); !asked) return fail(asked.error());
  if (!shared->map()) return fail(error() << "there is no memory for its outputs");
  const Block& block = shared->block();
  if (block.answer != AIT_RERUN_OK) {
    const std::string why = text_of(block.message);
    return fail(error(block.answer == AIT_RERUN_UNSUPPORTED ? ErrorCode::kUnsupported
                                                            : ErrorCode::kUnreadable)
                << (why.empty() ? "failed and does not say why" : why));
  }
  Outcome out;
  for (const BlockTensor& input : layout.inputs) {
    out.inputs.emplace_back();
    if (input.tensor.is_given == 0) continue;
    auto tensor = Shared::tensor(shared, input);
    if (!tensor) return fail(error() << tensor.error().message());
    out.inputs.back() = std::move(*tensor);
  }
  for (uint32_t i = 0; i < std::min<size_t>(block.output_count, kMaxTensors); ++i) {
    auto tensor = Shared::tensor(shared, block.outputs[i]);
    if (!tensor) return fail(error() << tensor.error().message());
    out.outputs.push_back(std::move(*tensor));
  }
  return out;
}

// Sends the file of the block and waits for the answer.
Result<void> Runner::ask(const Shared& block) {
  FileMessage message;
  cmsghdr* header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int file = block.file();
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  bool answered = ::sendmsg(socket_, &message.header, MSG_NOSIGNAL) == 1;
  const auto deadline = Clock::now() + settings_.limit;
  while (answered) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{socket_, POLLIN, 0};
    const int polled = ::poll(&ready, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) {
      ::kill(-worker_, SIGKILL);
      end_worker();
      return fail(error() << "gave no answer within " << settings_.limit.count()
                          << " ms and was ended; give it more time with --rerun-seconds");
    }
    answered = polled > 0 && ::recv(socket_, &message.byte, 1, 0) == 1;
    if (answered) return {};
  }
  return fail(error() << end_worker());
}

Result<void> Runner::start_worker() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(Error(ErrorCode::kUnreadable, settings_.worker)
                << "cannot be started: " << system_message(errno));
  const std::array<char*, 3> arguments = {settings_.worker.data(), settings_.plugin.data(),
                                          nullptr};

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // Standard output is ait's own, for its result.
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, ends[1], kSocket);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Ctrl-C asks ait to stop, which lets the operation at hand end first.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int bad =
      ::posix_spawn(&worker_, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  if (bad != 0) {
    ::close(ends[0]);
    worker_ = -1;
    return fail(Error(ErrorCode::kUnreadable, settings_.worker)
                << "cannot be started: " << system_message(bad));
  }
  socket_ = ends[0];
  return {};
}

std::string Runner::end_worker() {
  if (worker_ < 0) return {};
  ::close(socket_);
  int status = 0;
  const auto deadline = Clock::now() + kFarewell;
  pid_t ended = 0;
  while ((ended = ::waitpid(worker_, &status, WNOHANG)) == 0 && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (ended == 0) {
    ::kill(-worker_, SIGKILL);
    ::waitpid(worker_, &status, 0);
  }
  worker_ = socket_ = -1;
  if (WIFSIGNALED(status))
    return fmt::format("crashed: its process was killed by signal {} ({})", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)));
  return fmt::format("ended its process with status {}", WEXITSTATUS(status));
}

}  // namespace ait::rerun
