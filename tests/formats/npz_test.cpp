#include "formats/npz.h"

#include <gmock/gmock.h>

#include "zip_builder.h"

namespace ait::formats::npz {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy_of_bytes(std::string_view data) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                             std::to_string(data.size()) + ",), }\n";
  return "\x93NUMPY" + std::string("\1\0", 2) + little_endian(header.size(), 2) + header +
         std::string(data);
}

class Npz : public testing::Test {
 protected:
  std::unique_ptr<TensorFile> open_file(const std::string& bytes) {
    auto file = open(folder_.map(bytes));
    EXPECT_TRUE(file) << file.error().text();
    return std::move(*file);
  }

  TempFolder folder_;
};

TEST_F(Npz, ReadsStoredAndDeflatedArraysByName) {
  const auto file = open_file(build_zip({{.name = "b.npy", .data = npy_of_bytes("\1\2")},
                                         deflated("layers/0.npy", npy_of_bytes("\3"))}));
  ASSERT_EQ(file->size(), 2u);
  EXPECT_EQ(file->format(), "npz");
  EXPECT_EQ(file->note(), "");
  EXPECT_EQ(file->name(0), "b");
  EXPECT_EQ(file->name(1), "layers/0");
  EXPECT_THAT(values_of<uint8_t>(file->load(0).value()), ElementsAre(1, 2));
  EXPECT_THAT(values_of<uint8_t>(file->load(1).value()), ElementsAre(3));
}

TEST_F(Npz, TensorsOutliveTheirFile) {
  auto file = open_file(build_zip({deflated("a.npy", npy_of_bytes("\1\2\3"))}));
  const Tensor tensor = file->load(0).value();
  file.reset();
  EXPECT_THAT(values_of<uint8_t>(tensor), ElementsAre(1, 2, 3));
}

TEST_F(Npz, ABadArrayLeavesItsNeighboursAlone) {
  ZipEntry lies = deflated("lies.npy", npy_of_bytes("\1"));
  lies.claimed_crc32 = 0;
  const auto file =
      open_file(build_zip({{.name = "junk.npy", .data = "not an array"},
                           lies,
                           {.name = "cut.npy", .data = npy_of_bytes("\1\2").substr(0, 40)},
                           {.name = "good.npy", .data = npy_of_bytes("\5")}}));
  for (const size_t bad : {0, 1, 2}) {
    const auto tensor = file->load(bad);
    ASSERT_FALSE(tensor) << bad;
    EXPECT_EQ(tensor.error().code(), ErrorCode::kCorrupt);
    EXPECT_THAT(tensor.error().text(), HasSubstr(file->name(bad)));
    EXPECT_EQ(tensor.error().path(), (folder_.path() / "file").string());
  }
  EXPECT_THAT(values_of<uint8_t>(file->load(3).value()), ElementsAre(5));
}

TEST_F(Npz, NotesMembersThatAreNoArrays) {
  const auto file = open_file(build_zip(
      {{.name = "readme.txt", .data = "hello"}, {.name = "a.npy", .data = npy_of_bytes("\1")}}));
  ASSERT_EQ(file->size(), 1u);
  EXPECT_EQ(file->name(0), "a");
  EXPECT_THAT(file->note(), HasSubstr("ignored: 1"));
}

TEST_F(Npz, HoldsNothingWhenSavedEmptyButRefusesOtherZips) {
  EXPECT_EQ(open_file(build_zip({}))->size(), 0u);
  const auto other =
      open(folder_.map(build_zip({{.name = "word/document.xml", .data = "<xml/>"}})));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ait::formats::npz
