#include "capture/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "test_files.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;
using formats::little_endian;
using formats::TempFolder;

// A safetensors file of one-element float32 tensors.
std::string safetensors(const std::vector<std::string>& names) {
  std::string header = "{";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) header += ",";
    header += "\"" + names[i] + R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" +
              std::to_string(4 * i) + "," + std::to_string(4 * i + 4) + "]}";
  }
  header += "}";
  return little_endian(header.size(), 8) + header + std::string(4 * names.size(), '\0');
}

std::vector<std::string> names(const Capture& capture) {
  std::vector<std::string> out;
  for (const TensorRecord& record : capture.records) out.push_back(record.member);
  return out;
}

TEST(Checkpoint, ListsTheTensorsOfOneFile) {
  const TempFolder folder;
  const auto capture = read_checkpoint(folder.write("m.safetensors", safetensors({"b", "a"})));
  ASSERT_TRUE(capture);
  EXPECT_EQ(names(*capture), (std::vector<std::string>{"a", "b"}));
}

TEST(Checkpoint, JoinsShardsWithoutAnIndex) {
  const TempFolder folder;
  folder.write("m-1.safetensors", safetensors({"layers.10", "layers.2"}));
  folder.write("m-2.safetensors", safetensors({"layers.3", "layers.2"}));
  ASSERT_TRUE(is_checkpoint(folder.path().string()));
  const auto capture = read_checkpoint(folder.path().string());
  ASSERT_TRUE(capture);
  EXPECT_EQ(names(*capture), (std::vector<std::string>{"layers.2", "layers.3", "layers.10"}));
  ASSERT_EQ(capture->problems.size(), 1u) << "layers.2 stands in both";
}

TEST(Checkpoint, FollowsAnIndexAndKeepsWhatItPromises) {
  const TempFolder folder;
  folder.write("a.safetensors", safetensors({"x"}));
  folder.write(
      "model.safetensors.index.json",
      R"({"metadata": {}, "weight_map": {"x": "a.safetensors", "y": "gone.safetensors"}})");
  const auto capture = read_checkpoint(folder.path().string());
  ASSERT_TRUE(capture);
  EXPECT_EQ(names(*capture), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(capture->records[1].path, (folder.path() / "gone.safetensors").string());
}

TEST(Checkpoint, RefusesAnIndexThatPointsElsewhere) {
  const TempFolder folder;
  for (const char* file : {"../secret.safetensors", "/etc/passwd", "..", ""}) {
    SCOPED_TRACE(file);
    folder.write("model.safetensors.index.json",
                 std::string(R"({"weight_map": {"x": ")") + file + R"("}})");
    EXPECT_FALSE(read_checkpoint(folder.path().string()));
  }
}

TEST(Checkpoint, RefusesAnIndexWithoutAMap) {
  const TempFolder folder;
  for (const char* text :
       {"{}", "[]", "{\"weight_map\": 3}", "{\"weight_map\": {\"x\": 1}}", "{"}) {
    SCOPED_TRACE(text);
    folder.write("model.safetensors.index.json", text);
    EXPECT_FALSE(read_checkpoint(folder.path().string()));
  }
}

TEST(Checkpoint, IsNotHeldUpByAnIndexThatIsNone) {
  const TempFolder folder;
  const std::string index = folder.write("model.safetensors.index.json", "");
  fs::resize_file(index, uintmax_t{1} << 40);
  const auto huge = read_checkpoint(folder.path().string());
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().message(), "is larger than 256 MiB, more than such a file can be");
  fs::remove(index);
  ASSERT_EQ(::mkfifo(index.c_str(), 0600), 0);
  const auto fifo = read_checkpoint(folder.path().string());
  ASSERT_FALSE(fifo);
  EXPECT_EQ(fifo.error().message(), "is a FIFO where a file is expected");
}

TEST(Checkpoint, IsNotEveryFolder) {
  const TempFolder folder;
  folder.write("t.npy", "x");
  EXPECT_FALSE(is_checkpoint(folder.path().string()));
}

}  // namespace
}  // namespace ait::capture
