#include "formats/registry.h"

#include <gmock/gmock.h>

#include "zip_builder.h"

namespace ait::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(std::string_view data) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                             std::to_string(data.size()) + ",), }\n";
  return "\x93NUMPY" + std::string("\1\0", 2) + little_endian(header.size(), 2) + header +
         std::string(data);
}

std::string safetensors(size_t tensors) {
  std::string json = "{";
  for (size_t i = 0; i < tensors; ++i)
    json += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) +
            R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(i) + "," +
            std::to_string(i + 1) + "]}";
  json += "}";
  return little_endian(json.size(), 8) + json + std::string(tensors, '\1');
}

class Registry : public testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(Registry, LetsTheContentDecideNotTheName) {
  const std::pair<std::string, std::string_view> files[] = {
      {npy("ab"), "npy"},
      {build_zip({{.name = "a.npy", .data = npy("a")}}), "npz"},
      {safetensors(1), "safetensors"},
      {"$Version=1.0\ndtype=4\ndims=1\n$End=1\na", "atb"}};
  for (const auto& [bytes, format] : files) {
    const auto file = open_tensor_file(folder_.write("anything.pth", bytes));
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ((*file)->format(), format);
    EXPECT_TRUE((*file)->load(0));
  }
}

TEST_F(Registry, TellsTorchArchivesFromNumpys) {
  const std::string empty_dict = "\x80\2}.";
  const auto file =
      open_tensor_file(folder_.write("x", build_zip({{.name = "model/data.pkl", .data = empty_dict},
                                                     {.name = "a.npy", .data = npy("a")}})));
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ((*file)->format(), "torch");
}

TEST_F(Registry, TakesBytesAsBareWhenToldSo) {
  const std::string path = folder_.write("x", npy("ab"));
  const auto tensor = load_single(path, {}, RawLayout{DType::kUInt8, {}});
  ASSERT_TRUE(tensor);
  EXPECT_THAT(tensor->shape(), ElementsAre(static_cast<int64_t>(npy("ab").size())));
}

TEST_F(Registry, SaysWhatItReadsWhenItKnowsNothingOfAFile) {
  const auto file = open_tensor_file(folder_.write("x.txt", "hello"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kUnsupported);
  for (const std::string_view words :
       {"x.txt: not a tensor file that ait knows", "npy", "safetensors", "--dtype"})
    EXPECT_THAT(file.error().text(), HasSubstr(words));
}

TEST_F(Registry, SaysThatAFileIsEmptyAFolderOrMissing) {
  EXPECT_THAT(open_tensor_file(folder_.write("x.npy", "")).error().text(),
              HasSubstr("x.npy: is empty"));
  EXPECT_EQ(open_tensor_file(folder_.path().string()).error().code(), ErrorCode::kUnreadable);
  EXPECT_EQ(open_tensor_file((folder_.path() / "none.npy").string()).error().code(),
            ErrorCode::kNotFound);
}

TEST_F(Registry, PutsThePathIntoEveryError) {
  const std::string header = "$Version=1.0\n";
  for (const std::string& bytes :
       {std::string(""), std::string("hello"), npy("ab").substr(0, 20), build_zip({{.name = "x"}}),
        safetensors(1).substr(0, 20), header, header + "dtype=4\ndims=9\n$End=1\na",
        build_zip({{.name = "a.npy", .data = "x"}})}) {
    const std::string path = folder_.write("bad", bytes);
    const auto tensor = load_single(path);
    ASSERT_FALSE(tensor);
    EXPECT_EQ(tensor.error().path(), path) << tensor.error().text();
  }
}

TEST_F(Registry, LoadsTheOnlyTensorOrTheNamedOne) {
  EXPECT_TRUE(load_single(folder_.write("one", safetensors(1))));
  const std::string many = folder_.write("many", safetensors(9));
  EXPECT_TRUE(load_single(many, "t7"));
  const auto unnamed = load_single(many);
  EXPECT_EQ(unnamed.error().code(), ErrorCode::kUsage);
  EXPECT_THAT(unnamed.error().text(),
              HasSubstr("holds 9 tensors; name one of them: t0, t1, t2, t3, t4, …"));
  const auto absent = load_single(many, "t9");
  EXPECT_EQ(absent.error().code(), ErrorCode::kUsage);
  EXPECT_THAT(absent.error().text(), HasSubstr("no tensor named t9"));
  EXPECT_THAT(load_single(folder_.write("none", safetensors(0))).error().text(),
              HasSubstr("holds no tensor"));
  EXPECT_THAT(load_single(folder_.write("bare", npy("a")), "x").error().text(),
              HasSubstr("has no name"));
}

}  // namespace
}  // namespace ait::formats
