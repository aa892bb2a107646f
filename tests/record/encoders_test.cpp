#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "record/atb_bin_encoder.h"
#include "record/crc32.h"
#include "record/npy_encoder.h"
#include "record/safetensors_encoder.h"
#include "record/torch_zip_encoder.h"

namespace ait::record {
namespace {

using namespace std::string_literals;

std::string content(FileImage& file) {
  std::string all;
  const iovec* parts = file.parts();
  for (size_t i = 0; i < file.part_count(); ++i)
    all.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  EXPECT_EQ(all.size(), file.size_bytes());
  return all;
}

struct Sample {
  std::vector<int64_t> dims;
  std::string bytes;
  ElementType type;

  TensorImage image() const { return {type, dims.data(), dims.size(), bytes.data(), bytes.size()}; }
};

// {0, 1, -2, 0.5, 65504, inf}
const Sample kHalves{
    {2, 3}, "\x00\x00\x00\x3c\x00\xc0\x00\x38\xff\x7b\x00\x7c"s, ElementType::kFloat16};

TEST(AtbBinEncoder, WritesTheSpecifiedExample) {
  FileImage file;
  ASSERT_EQ(encode_atb_bin(kHalves.image(), file), EncodeResult::kOk);
  EXPECT_EQ(content(file),
            "$Version=1.0\n$Object.Count=1\n$Object.Length=12\nformat=2\ndtype=1\ndims=2,3\n"
            "$Object.data=0,12\n$End=1\n" +
                kHalves.bytes);
  EXPECT_EQ(file.size_bytes(), 110u);
}

TEST(AtbBinEncoder, DescribesWithoutData) {
  FileImage file;
  const TensorImage image{ElementType::kBFloat16, kHalves.dims.data(), 2, nullptr, 0};
  ASSERT_EQ(encode_atb_bin_description(image, file, 29), EncodeResult::kOk);
  EXPECT_EQ(
      content(file),
      "$Version=1.0\n$Object.Count=0\n$Object.Length=0\nformat=29\ndtype=27\ndims=2,3\n$End=1\n");
}

TEST(AtbBinEncoder, LeavesTheDimensionsOfAScalarEmpty) {
  FileImage file;
  const Sample scalar{{}, "\x07\x00\x00\x00"s, ElementType::kInt32};
  ASSERT_EQ(encode_atb_bin(scalar.image(), file), EncodeResult::kOk);
  EXPECT_NE(content(file).find("\ndims=\n"), std::string::npos);
}

TEST(AtbBinEncoder, RefusesMoreThanEightDimensions) {
  FileImage file;
  const Sample deep{std::vector<int64_t>(9, 1), "x", ElementType::kUInt8};
  EXPECT_EQ(encode_atb_bin(deep.image(), file), EncodeResult::kTooManyDimensions);
}

TEST(NpyEncoder, WritesWhatNumpyWrites) {
  FileImage file;
  ASSERT_EQ(encode_npy(kHalves.image(), file), EncodeResult::kOk);
  const std::string text = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(content(file), "\x93NUMPY\x01\x00\x76\x00"s + text +
                               std::string(117 - text.size(), ' ') + "\n" + kHalves.bytes);
}

TEST(NpyEncoder, WritesTuplesOfAnyLength) {
  const std::pair<std::vector<int64_t>, std::string> kShapes[] = {
      {{}, "()"}, {{1}, "(1,)"}, {{1, 1}, "(1, 1)"}};
  for (const auto& [dims, text] : kShapes) {
    FileImage file;
    const Sample one{dims, "x", ElementType::kUInt8};
    ASSERT_EQ(encode_npy(one.image(), file), EncodeResult::kOk);
    const std::string all = content(file);
    EXPECT_NE(all.find("'shape': " + text + ", }"), std::string::npos) << all;
    EXPECT_EQ((all.size() - 1) % 64, 0u);
  }
}

TEST(NpyEncoder, RefusesTypesWithoutAName) {
  FileImage file;
  const Sample bf16{{1}, "xx", ElementType::kBFloat16};
  EXPECT_EQ(encode_npy(bf16.image(), file), EncodeResult::kUnsupportedType);
}

TEST(Encoders, RefuseImagesThatContradictThemselves) {
  const std::string data(64, 'x');
  const std::vector<std::vector<int64_t>> kDims = {
      {3}, {-4}, {INT64_MAX, 4}, std::vector<int64_t>(65, 1)};
  for (const auto& dims : kDims) {
    const TensorImage image{ElementType::kFloat32, dims.data(), dims.size(), data.data(), 16};
    const NamedImage named{"n", 1, image};
    FileImage file;
    EXPECT_NE(encode_atb_bin(image, file), EncodeResult::kOk);
    EXPECT_NE(encode_npy(image, file), EncodeResult::kOk);
    EXPECT_NE(encode_torch(image, file), EncodeResult::kOk);
    EXPECT_NE(encode_torch_dict(&named, 1, file), EncodeResult::kOk);
    EXPECT_NE(encode_safetensors(&named, 1, file), EncodeResult::kOk);
    EXPECT_EQ(file.size_bytes(), 0u);
  }
}

TEST(Encoders, ReferToTensorBytesInsteadOfCopyingThem) {
  for (auto* encode :
       {+[](const TensorImage& image, FileImage& file) { return encode_atb_bin(image, file); },
        +[](const TensorImage& image, FileImage& file) { return encode_npy(image, file); },
        +[](const TensorImage& image, FileImage& file) { return encode_torch(image, file); }}) {
    FileImage file;
    ASSERT_EQ(encode(kHalves.image(), file), EncodeResult::kOk);
    bool referred = false;
    for (size_t i = 0; i < file.part_count(); ++i)
      referred |= file.parts()[i].iov_base == kHalves.bytes.data();
    EXPECT_TRUE(referred);
  }
}

TEST(SafetensorsEncoder, AlignsEveryTensorAndEscapesNames) {
  const Sample byte{{1}, "b", ElementType::kUInt8};
  const Sample wide{{1}, "wwwwwwww", ElementType::kInt64};
  const NamedImage images[] = {{"a\"\\\n", 4, byte.image()}, {"w", 1, wide.image()}};
  FileImage file;
  ASSERT_EQ(encode_safetensors(images, 2, file), EncodeResult::kOk);
  const std::string json =
      R"({"w":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"a\"\\\u000a":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  uint64_t length = 0;
  const std::string all = content(file);
  std::memcpy(&length, all.data(), 8);
  EXPECT_EQ(length, padded.size());
  EXPECT_EQ(all.substr(8), padded + "wwwwwwwwb");
}

TEST(SafetensorsEncoder, RefusesNamesThatAreNoText) {
  const Sample byte{{1}, "b", ElementType::kUInt8};
  for (const std::string& name : {"\x80"s, "\xc0\xaf"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s,
                                  "a\xe2\x82"s, "__metadata__"s}) {
    const NamedImage named{name.data(), name.size(), byte.image()};
    FileImage file;
    EXPECT_EQ(encode_safetensors(&named, 1, file), EncodeResult::kBadName);
  }
}

uint32_t u32(const std::string& text, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, text.data() + at, 4);
  return value;
}
uint16_t u16(const std::string& text, size_t at) {
  uint16_t value = 0;
  std::memcpy(&value, text.data() + at, 2);
  return value;
}

TEST(TorchZipEncoder, AlignsAndChecksumsEveryMember) {
  const Sample byte{{3}, "abc", ElementType::kUInt8};
  const NamedImage images[] = {{"x", 1, kHalves.image()}, {"y", 1, byte.image()}};
  FileImage file;
  ASSERT_EQ(encode_torch_dict(images, 2, file), EncodeResult::kOk);
  const std::string all = content(file);
  size_t at = 0;
  size_t members = 0;
  for (; all.compare(at, 4, "PK\x03\x04") == 0; ++members) {
    const size_t data = at + 30 + u16(all, at + 26) + u16(all, at + 28);
    const size_t bytes = u32(all, at + 18);
    EXPECT_EQ(data % 64, 0u);
    EXPECT_EQ(crc32(all.data() + data, bytes), u32(all, at + 14));
    at = data + bytes;
  }
  EXPECT_EQ(members, 5u);  // data.pkl, byteorder, two storages, version
  EXPECT_EQ(all.compare(at, 4, "PK\x01\x02"), 0);
}

TEST(TorchZipEncoder, RefusesInt4) {
  FileImage file;
  const Sample packed{{1}, "b", ElementType::kInt4Packed};
  EXPECT_EQ(encode_torch(packed.image(), file), EncodeResult::kUnsupportedType);
}

}  // namespace
}  // namespace ait::record
