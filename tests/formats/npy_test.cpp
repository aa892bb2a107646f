#include "formats/npy.h"

#include <gmock/gmock.h>

#include <bit>
#include <complex>

#include "test_files.h"

namespace ait::formats::npy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(std::string_view header, std::string_view data, int version = 1) {
  std::string text(header);
  text += '\n';
  return "\x93NUMPY" + std::string{static_cast<char>(version), '\0'} +
         little_endian(text.size(), version == 1 ? 2 : 4) + text + std::string(data);
}

std::string dict(std::string_view descr, std::string_view shape,
                 std::string_view fortran = "False") {
  return "{'descr': '" + std::string(descr) + "', 'fortran_order': " + std::string(fortran) +
         ", 'shape': " + std::string(shape) + ", }";
}

class Npy : public testing::Test {
 protected:
  Result<Tensor> read(const std::string& bytes) {
    auto file = open(folder_.map(bytes));
    if (!file) return fail(file.error());
    note_ = (*file)->note();
    EXPECT_EQ((*file)->format(), "npy");
    EXPECT_EQ((*file)->size(), 1u);
    EXPECT_EQ((*file)->name(0), "");
    return (*file)->load(0);
  }

  Error refuse(const std::string& bytes) {
    const auto tensor = read(bytes);
    EXPECT_FALSE(tensor);
    if (tensor) return Error(ErrorCode::kUsage);
    EXPECT_EQ(tensor.error().path(), (folder_.path() / "file").string());
    return tensor.error();
  }

  TempFolder folder_;
  std::string note_;
};

TEST_F(Npy, ReadsAllThreeVersions) {
  for (const int version : {1, 2, 3}) {
    const auto tensor =
        read(npy(dict("<i4", "(2, 3)"), bytes_of<int32_t>({1, 2, 3, 4, 5, 6}), version));
    ASSERT_TRUE(tensor) << tensor.error().text();
    EXPECT_THAT(tensor->shape(), ElementsAre(2, 3));
    EXPECT_THAT(values_of<int32_t>(*tensor), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_EQ(note_, "");
  }
}

TEST_F(Npy, RefusesOtherVersions) {
  std::string bytes = npy(dict("<i4", "()"), bytes_of<int32_t>({1}));
  bytes[6] = 4;
  EXPECT_EQ(refuse(bytes).code(), ErrorCode::kUnsupported);
  bytes[6] = 1;
  bytes[7] = 1;
  EXPECT_THAT(refuse(bytes).text(), HasSubstr("npy version 1.1"));
}

TEST_F(Npy, ReadsEveryTypeThatNumpyAndAitShare) {
  const std::pair<std::string_view, DType> types[] = {
      {"|b1", DType::kBool},      {"|i1", DType::kInt8},        {"|u1", DType::kUInt8},
      {"<i2", DType::kInt16},     {"<u2", DType::kUInt16},      {"<i4", DType::kInt32},
      {"<u4", DType::kUInt32},    {"<i8", DType::kInt64},       {"<u8", DType::kUInt64},
      {"<f2", DType::kFloat16},   {"<f4", DType::kFloat32},     {"<f8", DType::kFloat64},
      {"<c8", DType::kComplex64}, {"<c16", DType::kComplex128}, {"=f4", DType::kFloat32},
      {"f4", DType::kFloat32},    {"?", DType::kBool}};
  for (const auto& [descr, dtype] : types) {
    const auto tensor = read(npy(dict(descr, "(2,)"), std::string(2 * size_bytes(dtype), '\1')));
    ASSERT_TRUE(tensor) << descr;
    EXPECT_EQ(tensor->dtype(), dtype) << descr;
    EXPECT_EQ(note_, "") << descr;
  }
}

TEST_F(Npy, ReadsBigEndianElements) {
  EXPECT_THAT(values_of<uint16_t>(read(npy(dict(">u2", "(2,)"), "\1\2\3\4")).value()),
              ElementsAre(0x0102, 0x0304));
  EXPECT_THAT(values_of<uint8_t>(read(npy(dict(">u1", "(2,)"), "\1\2")).value()),
              ElementsAre(1, 2));
  // A complex number is two words, each of them swapped.
  const std::string one_two = std::string("\x3f\x80\0\0", 4) + std::string("\x40\0\0\0", 4);
  EXPECT_THAT(values_of<std::complex<float>>(read(npy(dict(">c8", "(1,)"), one_two)).value()),
              ElementsAre(std::complex<float>(1, 2)));
}

TEST_F(Npy, ReadsFortranOrderAsTheSameArray) {
  const auto tensor =
      read(npy(dict("<i2", "(2, 3)", "True"), bytes_of<int16_t>({1, 4, 2, 5, 3, 6}))).value();
  EXPECT_THAT(values_of<int16_t>(tensor), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(values_of<int16_t>(read(npy(dict("<i2", "(2, 0)", "True"), "")).value()),
              ElementsAre());
}

TEST_F(Npy, ReadsScalarsEmptyArraysAndPython2Longs) {
  EXPECT_THAT(read(npy(dict("|u1", "()"), "\7")).value().shape(), ElementsAre());
  EXPECT_THAT(read(npy(dict("|u1", "(3,)"), "\7\7\7")).value().shape(), ElementsAre(3));
  EXPECT_THAT(read(npy(dict("|u1", "(1L, 2L)"), "\7\7")).value().shape(), ElementsAre(1, 2));
  EXPECT_THAT(read(npy(dict("|u1", "(2, 0, 5)"), "")).value().shape(), ElementsAre(2, 0, 5));
}

TEST_F(Npy, TakesTheKeysInAnyOrderAndEitherQuotes) {
  const auto tensor = read(npy(R"({"shape":(2,),'fortran_order':False , 'descr':"<u2"})",
                               std::string_view("\1\0\2\0", 4)));
  ASSERT_TRUE(tensor) << tensor.error().text();
  EXPECT_THAT(values_of<uint16_t>(*tensor), ElementsAre(1, 2));
}

TEST_F(Npy, RefusesHeadersThatAreNotExactlyTheDict) {
  for (const std::string_view header :
       {"", "[]", "{", "{}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [3]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
        "{'descr': '<f4, 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ()} + 1",
        "{'descr': '<f4' 'fortran_order': False, 'shape': ()}",
        "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': ()}"})
    EXPECT_EQ(refuse(npy(header, "abcd")).code(), ErrorCode::kCorrupt) << header;
}

TEST_F(Npy, RefusesImpossibleShapes) {
  for (const std::string_view shape :
       {"(-1,)", "(9223372036854775808,)", "(9223372036854775807, 9223372036854775807)", "(0, -5)",
        "(4611686018427387904, 1)"})
    EXPECT_EQ(refuse(npy(dict("<f4", shape), "")).code(), ErrorCode::kCorrupt) << shape;
  std::string many = "(";
  for (size_t i = 0; i <= kMaxRank; ++i) many += "1, ";
  EXPECT_EQ(refuse(npy(dict("<f4", many + ")"), "abcd")).code(), ErrorCode::kCorrupt);
}

TEST_F(Npy, RefusesEveryTruncation) {
  const std::string whole = npy(dict("<f4", "(2,)"), "12345678");
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(refuse(whole.substr(0, size)).code(), ErrorCode::kCorrupt) << size;
}

TEST_F(Npy, SaysHowManyBytesAreMissing) {
  EXPECT_THAT(refuse(npy(dict("<f8", "(4, 3)"), "1234567")).text(),
              HasSubstr("promises 96 data bytes but 7 are there"));
}

TEST_F(Npy, NotesSurplusBytes) {
  EXPECT_THAT(values_of<uint8_t>(read(npy(dict("|u1", "(2,)"), "\1\2more")).value()),
              ElementsAre(1, 2));
  EXPECT_THAT(note_, HasSubstr("4 bytes follow the array"));
}

TEST_F(Npy, RefusesHeaderLongerThanAnyArrayNeeds) {
  EXPECT_EQ(refuse(npy(dict("|u1", "()") + std::string(100000, ' '), "\1", 2)).code(),
            ErrorCode::kCorrupt);
}

TEST_F(Npy, NeverLoadsObjectArrays) {
  const Error error = refuse(npy(dict("|O", "(1,)"), "\x80\4K\1."));
  EXPECT_EQ(error.code(), ErrorCode::kRefused);
  EXPECT_THAT(error.text(), HasSubstr("pickled Python"));
}

TEST_F(Npy, SaysWhyATypeIsNotRead) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"<V2", "bfloat16"},    {"|V2", "bfloat16"},      {"|V1", "bfloat16"},
      {"<f1", "bfloat16"},    {"<f16", "long double"},  {"<c32", "long double"},
      {"|S3", "strings"},     {"<U3", "strings"},       {"<M8[s]", "dates"},
      {"<m8[ns]", "dates"},   {"|V7", "does not read"}, {"", "does not read"},
      {"<", "does not read"}, {"<f3", "does not read"}};
  for (const auto& [descr, why] : cases) {
    const Error error = refuse(npy(dict(descr, "(1,)"), std::string(64, '\0')));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << descr;
    EXPECT_THAT(error.text(), HasSubstr(why)) << descr;
  }
  EXPECT_THAT(
      refuse(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"))
          .text(),
      HasSubstr("structured"));
}

}  // namespace
}  // namespace ait::formats::npy
