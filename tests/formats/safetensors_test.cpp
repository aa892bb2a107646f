#include "formats/safetensors.h"

#include <gmock/gmock.h>

#include "test_files.h"

namespace ait::formats::safetensors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string safetensors(std::string_view json, std::string_view data) {
  return little_endian(json.size(), 8) + std::string(json) + std::string(data);
}

class Safetensors : public testing::Test {
 protected:
  std::unique_ptr<TensorFile> open_file(std::string_view json, std::string_view data) {
    auto file = open(folder_.map(safetensors(json, data)));
    EXPECT_TRUE(file) << file.error().text();
    return std::move(*file);
  }

  Error refuse(const std::string& bytes) {
    const auto file = open(folder_.map(bytes));
    EXPECT_FALSE(file) << bytes;
    if (file) return Error(ErrorCode::kUsage);
    EXPECT_EQ(file.error().path(), (folder_.path() / "file").string());
    return file.error();
  }

  TempFolder folder_;
};

TEST_F(Safetensors, ReadsTensorsInTheOrderOfTheFile) {
  const auto file = open_file(
      R"({"__metadata__":{"format":"pt"},
          "late":{"dtype":"I16","shape":[2],"data_offsets":[3,7]},
          "early":{"data_offsets":[0,3],"shape":[3,1],"dtype":"U8"}}   )",
      "\1\2\3\4\1\5\1");
  ASSERT_EQ(file->size(), 2u);
  EXPECT_EQ(file->format(), "safetensors");
  EXPECT_EQ(file->name(0), "early");
  EXPECT_EQ(file->name(1), "late");
  EXPECT_THAT(file->load(0).value().shape(), ElementsAre(3, 1));
  EXPECT_THAT(values_of<uint8_t>(file->load(0).value()), ElementsAre(1, 2, 3));
  EXPECT_THAT(values_of<int16_t>(file->load(1).value()), ElementsAre(0x0104, 0x0105));
  EXPECT_EQ(file->note(), "");
}

TEST_F(Safetensors, ReadsEveryTypeOfTheFormat) {
  const std::pair<std::string, DType> types[] = {{"BOOL", DType::kBool},
                                                 {"U8", DType::kUInt8},
                                                 {"I8", DType::kInt8},
                                                 {"I16", DType::kInt16},
                                                 {"U16", DType::kUInt16},
                                                 {"I32", DType::kInt32},
                                                 {"U32", DType::kUInt32},
                                                 {"I64", DType::kInt64},
                                                 {"U64", DType::kUInt64},
                                                 {"F16", DType::kFloat16},
                                                 {"BF16", DType::kBFloat16},
                                                 {"F32", DType::kFloat32},
                                                 {"F64", DType::kFloat64},
                                                 {"C64", DType::kComplex64},
                                                 {"F8_E4M3", DType::kFloat8E4M3FN},
                                                 {"F8_E5M2", DType::kFloat8E5M2},
                                                 {"F8_E8M0", DType::kFloat8E8M0FNU},
                                                 {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ},
                                                 {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ}};
  for (const auto& [word, dtype] : types) {
    const std::string bytes(size_bytes(dtype), '\1');
    const auto file = open_file(R"({"x":{"dtype":")" + word + R"(","shape":[],"data_offsets":[0,)" +
                                    std::to_string(bytes.size()) + "]}}",
                                bytes);
    const auto tensor = file->load(0);
    ASSERT_TRUE(tensor) << tensor.error().text();
    EXPECT_EQ(tensor->dtype(), dtype) << word;
    EXPECT_EQ(tensor->elements(), 1u);
  }
}

TEST_F(Safetensors, HalvesTheLastDimensionOfPackedFourBitFloats) {
  const auto file = open_file(R"({"x":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]},
                                  "odd":{"dtype":"F4","shape":[3],"data_offsets":[4,5]},
                                  "one":{"dtype":"F4","shape":[],"data_offsets":[5,5]}})",
                              "abcde");
  const auto tensor = file->load(0).value();
  EXPECT_EQ(tensor.dtype(), DType::kFloat4Packed);
  EXPECT_THAT(tensor.shape(), ElementsAre(2, 2));
  EXPECT_EQ(file->load(1).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(file->load(2).error().code(), ErrorCode::kUnsupported);
}

TEST_F(Safetensors, RefusesATypeItDoesNotKnowAtLoadOnly) {
  const auto file = open_file(R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]},
                                  "b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
                              "abcd");
  EXPECT_EQ(file->load(0).error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(file->load(0).error().text(), HasSubstr("tensor a has the type F6_E2M3"));
  EXPECT_TRUE(file->load(1));
}

TEST_F(Safetensors, ChecksOffsetsAgainstDataShapeAndType) {
  for (const std::string_view offsets : {"[0,9]", "[4,0]", "[0,3]", "[0,5]", "[8,12]",
                                         "[18446744073709551615,3]", "[0,18446744073709551615]"}) {
    const auto file =
        open_file(R"({"bad":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(offsets) +
                      R"(},"good":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                  "\1\2\3\4\5\6\7\10");
    for (size_t i = 0; i < file->size(); ++i) {
      const auto tensor = file->load(i);
      EXPECT_EQ(tensor.has_value(), file->name(i) == "good") << offsets;
      if (!tensor) {
        EXPECT_EQ(tensor.error().code(), ErrorCode::kCorrupt);
      }
    }
  }
  for (const std::string_view shape :
       {"[-1]", "[9223372036854775807,2]", "[2305843009213693953]", "[2]"}) {
    const auto file = open_file(
        R"({"bad":{"dtype":"F64","shape":)" + std::string(shape) + R"(,"data_offsets":[0,8]}})",
        "12345678");
    EXPECT_EQ(file->load(0).error().code(), ErrorCode::kCorrupt) << shape;
  }
}

TEST_F(Safetensors, ReadsEmptyTensorsAndEmptyFiles) {
  const auto file = open_file(R"({"x":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}})", "");
  EXPECT_EQ(file->load(0).value().elements(), 0u);
  EXPECT_EQ(open_file("{}", "")->size(), 0u);
}

TEST_F(Safetensors, UnescapesNames) {
  const auto file =
      open_file(R"({"a\"\u00e9":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x");
  EXPECT_EQ(file->name(0), "a\"é");
}

TEST_F(Safetensors, NotesSurplusBytes) {
  const auto file = open_file(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "xyz");
  EXPECT_THAT(file->note(), HasSubstr("2 bytes follow the last tensor"));
}

TEST_F(Safetensors, RefusesTheSameNameTwice) {
  const std::string entry = R"(:{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const Error error =
      refuse(safetensors(R"({"twin")" + entry + R"(,"twi\u006e")" + entry + "}", "x"));
  EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
  EXPECT_THAT(error.text(), HasSubstr("twin twice"));
}

TEST_F(Safetensors, RefusesBadHeaders) {
  for (const std::string_view json :
       {"{", "[]", "{}x", "{\"x\":1}", "{\"x\":{}}", R"({"x":{"dtype":"U8","shape":[1]}})",
        R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
        R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})",
        R"({"x":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})",
        R"({"x":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})",
        R"({"x":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})",
        R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[-1,1]}})",
        R"({"x":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
        R"({"x":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", "{\"\xff\":{}}"})
    EXPECT_EQ(refuse(safetensors(json, "abcd")).code(), ErrorCode::kCorrupt) << json;
  std::string deep = R"({"x":)" + std::string(5000, '[') + std::string(5000, ']') + "}";
  EXPECT_EQ(refuse(safetensors(deep, "")).code(), ErrorCode::kCorrupt);
  std::string rank = "1";
  for (size_t i = 0; i < kMaxRank; ++i) rank += ",1";
  EXPECT_EQ(
      refuse(safetensors(R"({"x":{"dtype":"U8","shape":[)" + rank + R"(],"data_offsets":[0,1]}})",
                         "a"))
          .code(),
      ErrorCode::kCorrupt);
}

TEST_F(Safetensors, RefusesAHeaderThatIsTooLongOrCutOff) {
  EXPECT_EQ(refuse(little_endian(kMaxHeaderBytes + 1, 8) + "{}").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refuse(little_endian(~uint64_t{0}, 8) + "{}").code(), ErrorCode::kUnsupported);
  EXPECT_THAT(refuse(little_endian(500, 8) + "{}").text(),
              HasSubstr("500 bytes long but the file has only 10"));
  EXPECT_EQ(refuse("123").code(), ErrorCode::kCorrupt);
}

TEST_F(Safetensors, SniffsByTheBraceAfterAPlausibleLength) {
  const auto sniffs = [](const std::string& text) { return sniff(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(sniffs(safetensors("{}", "")));
  EXPECT_TRUE(sniffs(little_endian(kMaxHeaderBytes + 1, 8) + "{\""));
  EXPECT_FALSE(sniffs("{\"abcd\":{\"e\":1}}"));
  EXPECT_FALSE(sniffs(little_endian(2, 8) + "[]"));
  EXPECT_FALSE(sniffs("short"));
}

}  // namespace
}  // namespace ait::formats::safetensors
