#include "formats/torch_zip.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_files.h"
#include "torch_samples.h"
#include "zip_builder.h"

namespace ait::formats::torch_zip {
namespace {

using namespace std::string_literals;

std::string text(const std::string& value) { return "X" + little_endian(value.size(), 4) + value; }
std::string integer(int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
}
std::string tuple(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += integer(value);
  return out + "t";
}

struct Description {
  std::string storage = "FloatStorage";
  std::string key = "0";
  int64_t elements = 4;
  int64_t offset = 0;
  std::vector<int64_t> shape = {4};
  std::vector<int64_t> strides = {1};
};

std::string tensor(const Description& of = {}) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + of.storage +
         "\n" + text(of.key) + text("cpu") + integer(of.elements) + "tQ" + integer(of.offset) +
         tuple(of.shape) + tuple(of.strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

class TorchZip : public testing::Test {
 protected:
  const std::string floats_ = bytes_of<float>({1, 2, 3, 4});

  Result<std::unique_ptr<TensorFile>> open_archive(std::vector<ZipEntry> members) {
    return open(folder_.map(build_zip(members)));
  }
  Result<std::unique_ptr<TensorFile>> open_pickle(const std::string& pickle) {
    return open_archive({{.name = "m/data.pkl", .data = "\x80\x02" + pickle + "."},
                         {.name = "m/data/0", .data = floats_}});
  }
  // The error of the only tensor.
  Error load_error(const std::string& pickle) {
    auto file = open_pickle(pickle);
    if (!file) {
      ADD_FAILURE() << file.error().text();
      return file.error();
    }
    EXPECT_EQ((*file)->size(), 1u);
    auto loaded = (*file)->load(0);
    EXPECT_FALSE(loaded);
    return loaded ? Error(ErrorCode::kInterrupted) : loaded.error();
  }

  TempFolder folder_;
};

TEST_F(TorchZip, ReadsWhatTorchWrites) {
  for (const char* stem : {"bare", "parameter", "dtypes", "structure", "views", "lazy", "not_plain",
                           "values", "protocol4"})
    expect_sample(stem + ".pt"s);
}

TEST_F(TorchZip, MapsStoragesInPlace) {
  const auto file = MappedFile::open(torch_sample("views.pt")).value();
  const auto opened = open(file);
  ASSERT_TRUE(opened) << opened.error().text();
  const auto bytes = file->bytes();
  const std::byte* shared = nullptr;
  for (const size_t index : {0u, 1u}) {  // base and its transpose
    const auto loaded = (*opened)->load(index).value();
    EXPECT_GE(loaded.view().data, bytes.data());
    EXPECT_LT(loaded.view().data, bytes.data() + bytes.size());
    if (index > 0) {
      EXPECT_EQ(loaded.view().data, shared);
    }
    shared = loaded.view().data;
  }
}

TEST_F(TorchZip, TellsWhenThereIsNoTensor) {
  const auto opened = open_tensor_file(torch_sample("values.pt"));
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->size(), 0u);
  EXPECT_NE((*opened)->note(), "");
}

TEST_F(TorchZip, RefusesAWholeModuleAndNamesItsClass) {
  const auto opened = open_tensor_file(torch_sample("module.pt"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kRefused);
  EXPECT_NE(opened.error().text().find("torch.nn.modules.linear.Linear"), std::string::npos)
      << opened.error().text();
}

TEST_F(TorchZip, SaysThatTorchScriptIsNotSupported) {
  const auto opened = open_tensor_file(torch_sample("script.pt"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(opened.error().text().find("TorchScript"), std::string::npos) << opened.error().text();
}

TEST_F(TorchZip, ReadsStoragesOfBigEndianMachines) {
  std::string swapped = floats_;
  for (size_t at = 0; at < swapped.size(); at += 4)
    std::reverse(swapped.begin() + at, swapped.begin() + at + 4);
  auto file = open_archive({{.name = "m/data.pkl", .data = "\x80\x02" + tensor() + "."},
                            {.name = "m/byteorder", .data = "big"},
                            {.name = "m/data/0", .data = swapped}});
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(values_of<float>((*file)->load(0).value()), (std::vector<float>{1, 2, 3, 4}));
  file = open_archive({{.name = "m/data.pkl", .data = "\x80\x02" + tensor() + "."},
                       {.name = "m/byteorder", .data = "middle"},
                       {.name = "m/data/0", .data = floats_}});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
}

TEST_F(TorchZip, ReadsRepackedArchives) {
  const std::string pickle = "\x80\x02" + tensor() + ".";
  const std::string zip = build_zip({{.name = "m/data/0", .data = floats_},
                                     {.name = "m/version", .data = "3\n"},
                                     deflated("m/data.pkl", pickle)});
  EXPECT_TRUE(sniff(std::as_bytes(std::span(zip.data(), zip.size()))));
  auto file = open(folder_.map(zip));
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(values_of<float>((*file)->load(0).value()), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(TorchZip, LeavesOtherArchivesAlone) {
  const std::string zip = build_zip({{.name = "x.npy", .data = "12345678901234567890"}});
  EXPECT_FALSE(sniff(std::as_bytes(std::span(zip.data(), zip.size()))));
}

TEST_F(TorchZip, ReadsWhatTorchNpuSaves) {
  std::string pickle = tensor();
  pickle.replace(pickle.find("torch._utils"), 12, "torch_npu.utils.storage");
  pickle.replace(pickle.find("_rebuild_tensor_v2"), 18, "_rebuild_npu_tensor");
  pickle.insert(pickle.size() - 2, integer(2));  // the device's layout, after the hooks
  auto file = open_pickle(pickle);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(values_of<float>((*file)->load(0).value()), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(TorchZip, RejectsTensorsThatReachOutsideTheirStorage) {
  for (const Description& bad : std::vector<Description>{{.shape = {5}},
                                                         {.offset = 1},
                                                         {.offset = INT64_MAX},
                                                         {.offset = -1},
                                                         {.strides = {2}},
                                                         {.strides = {-1}},
                                                         {.strides = {INT64_MAX}},
                                                         {.shape = {-4}},
                                                         {.shape = {2, 2}, .strides = {1}},
                                                         {.shape = std::vector<int64_t>(65, 1)},
                                                         {.elements = 5},
                                                         {.elements = -1},
                                                         {.elements = INT64_MAX}}) {
    const Error error = load_error(tensor(bad));
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt) << error.text();
    EXPECT_FALSE(error.path().empty());
  }
}

TEST_F(TorchZip, ReportsAMissingStorageAndKeepsTheOthers) {
  auto file = open_pickle("}(" + text("a") + tensor({.key = "7"}) + text("b") + tensor() + "u");
  ASSERT_TRUE(file) << file.error().text();
  const auto missing = (*file)->load(0);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("m/data/7"), std::string::npos) << missing.error().text();
  EXPECT_NE(missing.error().text().find("tensor a"), std::string::npos) << missing.error().text();
  EXPECT_TRUE((*file)->load(1));
}

TEST_F(TorchZip, NeverLeavesItsFolderOfStorages) {
  EXPECT_EQ(load_error(tensor({.key = "../data.pkl"})).code(), ErrorCode::kCorrupt);
}

TEST_F(TorchZip, RejectsMalformedStorageReferences) {
  const std::string rest = integer(0) + tuple({4}) + tuple({1}) + "\x89N";
  for (const std::string& id :
       {text("storage"), "N"s, "()t"s, "(" + text("module") + "NNNNt",
        "(" + text("storage") + "ctorch\nSize\n" + text("0") + text("cpu") + integer(4) + "t",
        "(" + text("storage") + "ctorch\nFloatStorage\n" + integer(0) + text("cpu") + integer(4) +
            "t"})
    EXPECT_EQ(load_error("ctorch._utils\n_rebuild_tensor_v2\n(" + id + "Q" + rest + "tR").code(),
              ErrorCode::kCorrupt);
}

TEST_F(TorchZip, RejectsRebuildsWithoutTheirArguments) {
  for (const char* function :
       {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter"})
    EXPECT_EQ(load_error("ctorch._utils\n"s + function + "\n)R").code(), ErrorCode::kCorrupt)
        << function;
  EXPECT_EQ(load_error("ctorch._tensor\n_rebuild_from_type_v2\n)R").code(), ErrorCode::kCorrupt);
}

TEST_F(TorchZip, EndsEndlessWrapping) {
  std::string pickle = tensor();
  for (int i = 0; i < 20; ++i)
    pickle = "ctorch._utils\n_rebuild_parameter\n(" + pickle + "\x89" + ")tR";
  EXPECT_EQ(load_error(pickle).code(), ErrorCode::kCorrupt);
}

TEST_F(TorchZip, SaysWhichElementTypeIsNotSupported) {
  const Error error = load_error(tensor({.storage = "QUInt4x2Storage"}));
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_NE(error.text().find("QUInt4x2Storage"), std::string::npos) << error.text();
}

TEST_F(TorchZip, EndsTheWalkOverCyclesAndSharedLists) {
  const std::string cycle = "]q\x01" + tensor() + "a" + "h\x01" + "a";
  EXPECT_EQ(open_pickle(cycle).error().code(), ErrorCode::kCorrupt);
  std::string laughs = "]" + tensor() + "a";
  for (int i = 0; i < 40; ++i) laughs = laughs + "q\x01" + "0](h\x01h\x01" + "e";
  EXPECT_EQ(open_pickle(laughs).error().code(), ErrorCode::kCorrupt);
  // A long list of numbers, shared by many.
  const std::string shared = "](" + std::string(5000, 'N') + "eq\x01" + "0](" + [] {
    std::string many;
    for (int i = 0; i < 5000; ++i) many += "h\x01";
    return many;
  }() + "e";
  EXPECT_EQ(open_pickle(shared).error().code(), ErrorCode::kCorrupt);
}

TEST_F(TorchZip, BoundsTheLengthOfNames) {
  EXPECT_EQ(open_pickle("}" + text(std::string(100'000, 'x')) + tensor() + "s").error().code(),
            ErrorCode::kCorrupt);
}

TEST_F(TorchZip, RejectsAnArchiveWithoutPickle) {
  const auto file = open_archive({{.name = "m/deeper/data.pkl", .data = "N."}});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ait::formats::torch_zip
