#include "formats/torch_legacy.h"

#include <gtest/gtest.h>

#include <string>

#include "test_files.h"
#include "torch_samples.h"

namespace ait::formats::torch_legacy {
namespace {

using namespace std::string_literals;

const std::string kHead =
    "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."s;

// A tensor of float32 [2] in the storage "k"; `view` is None or what torch 0.x wrote for storages
// inside others.
std::string tensor(const std::string& view = "N") {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor\n((U\x07storagectorch\nFloatStorage\nU\x01kU\x03"
         "cpuK\x04" +
         view + "tQK\0K\x02\x85K\x01\x85tR."s;
}
const std::string kKeys =
    "\x80\x02](U\x01k"
    "e."s;
const std::string kStorage = little_endian(4, 8) + bytes_of<float>({1, 2, 3, 4});

class TorchLegacy : public testing::Test {
 protected:
  Result<std::unique_ptr<TensorFile>> open_text(const std::string& text) {
    return open(folder_.map(text));
  }

  TempFolder folder_;
};

TEST_F(TorchLegacy, ReadsWhatTorchWrites) {
  for (const char* stem : {"bare", "parameter", "dtypes", "structure", "views", "lazy", "not_plain",
                           "values", "protocol4"})
    expect_sample(stem + "_legacy.pt"s);
}

TEST_F(TorchLegacy, ReadsStringsOfPythonTwo) {
  const auto file = open_text(kHead + tensor() + kKeys + kStorage);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(values_of<float>((*file)->load(0).value()), (std::vector<float>{1, 2}));
}

TEST_F(TorchLegacy, HonoursStorageViews) {
  const auto file = open_text(kHead + tensor("(U\x01vK\x01K\x03t"s) + kKeys + kStorage);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(values_of<float>((*file)->load(0).value()), (std::vector<float>{2, 3}));
  const auto outside = open_text(kHead + tensor("(U\x01vK\x02K\x03t"s) + kKeys + kStorage);
  EXPECT_EQ((*outside)->load(0).error().code(), ErrorCode::kCorrupt);
}

TEST_F(TorchLegacy, FailsCleanlyWhereverItIsCut) {
  const std::string whole = kHead + tensor() + kKeys + kStorage;
  const size_t described = whole.size() - kStorage.size();
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto file = open_text(whole.substr(0, length));
    ASSERT_EQ(file.has_value(), length >= described) << length;
    const Error error = file ? (*file)->load(0).error() : file.error();
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.text();
  }
}

TEST_F(TorchLegacy, KeepsTensorsInFrontOfACut) {
  std::ifstream in(torch_sample("dtypes_legacy.pt"), std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  whole.resize(whole.size() - 1);  // in the last storage
  const auto file = open_text(whole);
  ASSERT_TRUE(file) << file.error().text();
  size_t lost = 0;
  for (size_t i = 0; i < (*file)->size(); ++i) lost += (*file)->load(i) ? 0 : 1;
  EXPECT_EQ(lost, 1u);
}

TEST_F(TorchLegacy, RejectsCountsThatOverflow) {
  for (const uint64_t count : {~uint64_t{0}, uint64_t{1} << 62, uint64_t{5}}) {
    const auto file = open_text(kHead + tensor() + kKeys + little_endian(count, 8) +
                                bytes_of<float>({1, 2, 3, 4}));
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ((*file)->load(0).error().code(), ErrorCode::kCorrupt);
  }
}

TEST_F(TorchLegacy, RejectsKeysThatAreNoList) {
  for (const std::string& keys : {"N."s, "](Ne."s}) {
    const auto file = open_text(kHead + tensor() + keys + kStorage);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
  }
}

TEST_F(TorchLegacy, RefusesCodeInAnyOfItsPickles) {
  const std::string attack = "cos\nsystem\nU\x02id\x85R."s;
  for (const std::string& text :
       {kHead.substr(0, 15) + attack, kHead + attack, kHead + tensor() + attack}) {
    const auto file = open_text(text);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), ErrorCode::kRefused) << file.error().text();
  }
}

TEST_F(TorchLegacy, RejectsOtherVersions) {
  std::string text = kHead + tensor() + kKeys + kStorage;
  text[text.find("M\xe9\x03") + 1] = '\xe8';
  EXPECT_EQ(open_text(text).error().code(), ErrorCode::kUnsupported);
}

TEST_F(TorchLegacy, LeavesOtherPicklesAlone) {
  const std::string other = "\x80\x02}q\0."s;
  EXPECT_FALSE(sniff(std::as_bytes(std::span(other.data(), other.size()))));
}

}  // namespace
}  // namespace ait::formats::torch_legacy
