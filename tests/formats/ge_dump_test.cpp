// tests/python/test_formats_ge.py has the types and orders, against protobuf's own library.

#include "formats/ge_dump.h"

#include <gmock/gmock.h>

#include "formats/ge_header.h"
#include "ge_builder.h"
#include "test_files.h"

namespace ait::formats::ge_dump {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace ge_builder;

class GeDump : public testing::Test {
 protected:
  std::unique_ptr<TensorFile> open_file(const std::string& bytes) {
    auto file = open(folder_.map(bytes));
    EXPECT_TRUE(file) << file.error().text();
    return std::move(*file);
  }
  std::string refused(const std::string& bytes) {
    const auto file = open(folder_.map(bytes));
    EXPECT_FALSE(file);
    return file ? std::string() : file.error().text();
  }
  static bool sniffed(const std::string& bytes) {
    return sniff(std::as_bytes(std::span(bytes.data(), bytes.size())));
  }

  TempFolder folder_;
};

TEST_F(GeDump, ReadsInputsBeforeOutputs) {
  const auto file = open_file(
      dump(kVersion + output(1, 4) + input(2, 8) + text(6, "Add_1"), bytes_of<float>({1, 2, 3})));
  ASSERT_EQ(file->size(), 2U);
  EXPECT_EQ(file->format(), "GE dump");
  EXPECT_EQ(file->name(0), "input_0");
  EXPECT_EQ(file->name(1), "output_0");
  EXPECT_THAT(values_of<float>(file->load(0).value()), ElementsAre(1, 2));
  EXPECT_THAT(values_of<float>(file->load(1).value()), ElementsAre(3));
  EXPECT_EQ(file->note(), "");
}

TEST_F(GeDump, IsRecognisedByItsContent) {
  EXPECT_TRUE(sniffed(dump(kVersion + output(1, 4), bytes_of<float>({1}))));
  EXPECT_TRUE(sniffed(dump(output(1, 4), bytes_of<float>({1}))));         // without a version
  EXPECT_TRUE(sniffed(dump(kVersion + output(1, 4), "").substr(0, 20)));  // cut short
  EXPECT_FALSE(sniffed(dump("", "")));
  EXPECT_FALSE(sniffed(dump(text(99, "x"), "")));  // a message of something else
  EXPECT_FALSE(sniffed("some text that is longer than eight bytes"));
  EXPECT_FALSE(sniffed(std::string(64, '\0')));
}

TEST_F(GeDump, KeepsWholeTensorsOfAFileThatWasCutShort) {
  const auto file = open_file(dump(kVersion + input(1, 4) + output(2, 8), bytes_of<float>({7, 8})));
  EXPECT_THAT(values_of<float>(file->load(0).value()), ElementsAre(7));
  EXPECT_THAT(file->load(1).error().text(),
              HasSubstr("tensor output_0 of 8 bytes reaches beyond the end of the file"));
}

TEST_F(GeDump, BlocksThatWouldWrapAroundAreBeyondTheEnd) {
  const auto file = open_file(dump(
      kVersion + input(1, ~uint64_t{0} - 4) + output(1, 64) + output(1, 4), bytes_of<float>({7})));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_THAT(file->load(i).error().text(), HasSubstr("reaches beyond the end")) << i;
}

TEST_F(GeDump, BlockWithTooFewBytesIsAnErrorOfItsTensor) {
  const auto file =
      open_file(dump(kVersion + input(1000, 4) + output(1, 4), bytes_of<float>({1, 2})));
  EXPECT_THAT(file->load(0).error().text(), HasSubstr("needs 4000 bytes for its shape"));
  EXPECT_THAT(values_of<float>(file->load(1).value()), ElementsAre(2));
}

TEST_F(GeDump, ImpossibleShapesAreRefused) {
  for (const uint64_t elements : {uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}}) {
    const auto file = open_file(dump(kVersion + output(elements, 4), bytes_of<float>({1})));
    EXPECT_THAT(file->load(0).error().text(), HasSubstr("needs too many bytes")) << elements;
  }
}

TEST_F(GeDump, DamagedHeadersAreRefusedInOneSentence) {
  const std::string good = kVersion + output(1, 4);
  EXPECT_THAT(refused(little_endian(1U << 20, 8) + good), HasSubstr("it was probably cut short"));
  EXPECT_THAT(refused(little_endian(~uint64_t{0}, 8) + good), HasSubstr("cut short"));
  EXPECT_THAT(refused(dump(good.substr(0, good.size() - 3), "")), HasSubstr("cut short"));
  EXPECT_THAT(refused(dump(good + std::string(11, '\xff'), "")), HasSubstr("more than 64 bits"));
  EXPECT_THAT(refused(dump(good + '\7', "")), HasSubstr("a field that no message can have"));
  EXPECT_THAT(refused(dump(good + '\4', "")), HasSubstr("a field that no message can have"));
  EXPECT_THAT(refused(dump(good + varint(1 << 3 | 4), "")),
              HasSubstr("a group that was not begun"));
  EXPECT_THAT(refused(dump(good + varint(1 << 3 | 3), "")), HasSubstr("ends inside a group"));
  EXPECT_THAT(refused(dump(good + std::string(200, '\x0b'), "")), HasSubstr("deeper than"));
  EXPECT_THAT(refused(dump(text(3, text(3, text(1, std::string(65, '\1')))), "")),
              HasSubstr("more than 64 dimensions"));
  EXPECT_THAT(refused(dump("ZZZZ" + good, "")), HasSubstr("nano dump format is not supported"));
}

TEST_F(GeDump, TooManyTensorsAreRefused) {
  std::string header;
  for (size_t i = 0; i <= kMaxTensors; ++i) header += std::string("\x22\x00", 2);
  EXPECT_THAT(refused(dump(header, "")), HasSubstr("more than 100000 tensors"));
}

TEST_F(GeDump, NotesWhatIsNotConvertedAndNotWhatFollows) {
  const std::string buffer = text(5, number(3, 2));
  EXPECT_EQ(open_file(dump(kVersion + output(1, 4) + buffer, "datazz"))->note(), "");
  EXPECT_EQ(open_file(dump(kVersion + output(1, 4) + buffer, "datazz1"))->note(), "");
  const std::string blocks =
      text(3, number(1, 1) + number(2, 28) + text(3, text(1, "\1")) + number(6, 4));
  EXPECT_EQ(open_file(dump(kVersion + blocks, "data"))->note(),
            "tensor output_0 is in format FRACTAL_ZZ and is not converted");
}

TEST_F(GeDump, IsSummarisedByItsHeaderAlone) {
  const std::string path = folder_.write(
      "x",
      dump(kVersion + input(2, 8) + input(2, 8) + output(1, 4) + text(6, "model/layer.0/Add_1"),
           ""));
  const auto summary = summarise(path).value();
  EXPECT_EQ(summary.op_name, "model/layer.0/Add_1");
  EXPECT_EQ(summary.inputs, 2U);
  EXPECT_EQ(summary.outputs, 1U);
  const auto nothing = summarise(folder_.write("y", std::string(8, '\0'))).value();
  EXPECT_EQ(nothing.inputs + nothing.outputs, 0U);
  EXPECT_THAT(summarise(folder_.write("z", "")).error().text(), HasSubstr("is empty"));
}

}  // namespace
}  // namespace ait::formats::ge_dump
