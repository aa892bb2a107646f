// The memory that ait shares with the process that runs operations: one block for each question,
// first this head, then the bytes of the tensors. The process is sent the block's file over a
// socket, answers with one byte, and has then filled in the head.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "rerun/plugin.h"

namespace ait::rerun {

inline constexpr size_t kMaxTensors = 256;
inline constexpr size_t kMaxTypeBytes = 256;
inline constexpr size_t kMaxParamBytes = 65536;
inline constexpr size_t kMaxMessageBytes = 4096;
inline constexpr uint64_t kAlignment = 64;
// The number that the socket has in the process.
inline constexpr int kSocket = 3;

inline constexpr uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct BlockTensor {
  AitRerunTensor tensor;  // its pointer means nothing on the other side
  uint64_t offset_bytes;  // in the block
};

struct Block {
  enum Question : uint8_t { kLoad, kRun };

  Question question;
  int32_t answer;  // AIT_RERUN_OK, …
  int32_t device;
  uint32_t input_count;
  uint32_t output_count;
  uint64_t memory_bytes;  // the block may grow to this size
  std::array<char, kMaxTypeBytes + 1> type;
  std::array<char, kMaxParamBytes + 1> param;
  std::array<char, kMaxMessageBytes> message;
  std::array<char, kMaxMessageBytes> library;
  std::array<BlockTensor, kMaxTensors> inputs;
  std::array<BlockTensor, kMaxTensors> outputs;
};

// One byte with room for a file beside it.
struct FileMessage {
  FileMessage() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = room.data();
    header.msg_controllen = room.size();
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;

  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr header{};
};

}  // namespace ait::rerun
