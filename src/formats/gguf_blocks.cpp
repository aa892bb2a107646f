#include "formats/gguf_blocks.h"

#include <array>

#include "formats/little_endian.h"
#include "tensor/half.h"

namespace ait::formats::gguf {
namespace {

using Block = std::span<const std::byte>;

float half_at(Block block, size_t at) { return fp16_to_float(read_le<uint16_t>(block, at)); }
uint32_t byte_at(Block block, size_t at) { return std::to_integer<uint32_t>(block[at]); }
int signed_at(Block block, size_t at) {
  return static_cast<int8_t>(std::to_integer<uint8_t>(block[at]));
}

// A scale, then 32 signed bytes.
void decode_q8_0(Block block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(signed_at(block, 2 + i));
}

// A scale, then 16 bytes: their low halves are the first 16 elements, their high halves the others.
void decode_q4_0(Block block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < 16; ++i) {
    const uint32_t both = byte_at(block, 2 + i);
    out[i] = scale * static_cast<float>(static_cast<int>(both & 15) - 8);
    out[i + 16] = scale * static_cast<float>(static_cast<int>(both >> 4) - 8);
  }
}

// Two scales, eight six-bit scales and eight six-bit minima in 12 bytes, then 128 bytes of halves: 32
// bytes have two groups of 32 elements, the low halves first.
void decode_q4_k(Block block, float* out) {
  const float scale = half_at(block, 0);
  const float least = half_at(block, 2);
  const Block six = block.subspan(4, 12);
  const Block halves = block.subspan(16, 128);
  for (size_t group = 0; group < 8; ++group) {
    uint32_t own_scale = 0;
    uint32_t own_least = 0;
    if (group < 4) {
      own_scale = byte_at(six, group) & 63;
      own_least = byte_at(six, group + 4) & 63;
    } else {
      // Four bits in the last four bytes, the upper two above those of the first four groups.
      own_scale = (byte_at(six, group + 4) & 15) | ((byte_at(six, group - 4) >> 6) << 4);
      own_least = (byte_at(six, group + 4) >> 4) | ((byte_at(six, group) >> 6) << 4);
    }
    const float step = scale * static_cast<float>(own_scale);
    const float below = least * static_cast<float>(own_least);
    for (size_t i = 0; i < 32; ++i) {
      const uint32_t both = byte_at(halves, 32 * (group / 2) + i);
      const uint32_t value = group % 2 == 0 ? both & 15 : both >> 4;
      out[32 * group + i] = step * static_cast<float>(value) - below;
    }
  }
}

// 128 bytes with the lower four bits, 64 with the upper two, 16 signed scales, and a scale of these.
// Each half of the block has four groups of 32 elements.
void decode_q6_k(Block block, float* out) {
  const Block lower = block.subspan(0, 128);
  const Block upper = block.subspan(128, 64);
  const Block scales = block.subspan(192, 16);
  const float scale = half_at(block, 208);
  for (size_t half = 0; half < 2; ++half)
    for (size_t group = 0; group < 4; ++group)
      for (size_t i = 0; i < 32; ++i) {
        const uint32_t both = byte_at(lower, 64 * half + 32 * (group % 2) + i);
        const uint32_t low = group < 2 ? both & 15 : both >> 4;
        const uint32_t high = (byte_at(upper, 32 * half + i) >> (2 * group)) & 3;
        const float step =
            scale * static_cast<float>(signed_at(scales, 8 * half + 2 * group + i / 16));
        out[128 * half + 32 * group + i] =
            step * static_cast<float>(static_cast<int>(low | (high << 4)) - 32);
      }
}

constexpr std::array kTypes = {
    BlockType{0, "F32", 1, 4, DType::kFloat32},
    BlockType{1, "F16", 1, 2, DType::kFloat16},
    BlockType{2, "Q4_0", 32, 18, {}, decode_q4_0},
    BlockType{3, "Q4_1", 32, 20, {}},
    BlockType{6, "Q5_0", 32, 22, {}},
    BlockType{7, "Q5_1", 32, 24, {}},
    BlockType{8, "Q8_0", 32, 34, {}, decode_q8_0},
    BlockType{9, "Q8_1", 32, 40, {}},
    BlockType{10, "Q2_K", 256, 84, {}},
    BlockType{11, "Q3_K", 256, 110, {}},
    BlockType{12, "Q4_K", 256, 144, {}, decode_q4_k},
    BlockType{13, "Q5_K", 256, 176, {}},
    BlockType{14, "Q6_K", 256, 210, {}, decode_q6_k},
    BlockType{15, "Q8_K", 256, 292, {}},
    BlockType{16, "IQ2_XXS", 256, 66, {}},
    BlockType{17, "IQ2_XS", 256, 74, {}},
    BlockType{18, "IQ3_XXS", 256, 98, {}},
    BlockType{19, "IQ1_S", 256, 50, {}},
    BlockType{20, "IQ4_NL", 32, 18, {}},
    BlockType{21, "IQ3_S", 256, 110, {}},
    BlockType{22, "IQ2_S", 256, 82, {}},
    BlockType{23, "IQ4_XS", 256, 136, {}},
    BlockType{24, "I8", 1, 1, DType::kInt8},
    BlockType{25, "I16", 1, 2, DType::kInt16},
    BlockType{26, "I32", 1, 4, DType::kInt32},
    BlockType{27, "I64", 1, 8, DType::kInt64},
    BlockType{28, "F64", 1, 8, DType::kFloat64},
    BlockType{29, "IQ1_M", 256, 56, {}},
    BlockType{30, "BF16", 1, 2, DType::kBFloat16},
    BlockType{34, "TQ1_0", 256, 54, {}},
    BlockType{35, "TQ2_0", 256, 66, {}},
    BlockType{39, "MXFP4", 32, 17, {}},
    BlockType{40, "NVFP4", 64, 36, {}},
    BlockType{41, "Q1_0", 128, 18, {}},
};

}  // namespace

const BlockType* find_type(uint32_t number) {
  for (const BlockType& type : kTypes)
    if (type.number == number) return &type;
  return nullptr;
}

}  // namespace ait::formats::gguf
