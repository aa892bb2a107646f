#include "formats/atb_bin.h"

#include <gmock/gmock.h>

#include <cmath>

#include "test_files.h"

namespace ait::formats::atb_bin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// float16 {0, 1, -2, 0.5, 65504, inf}, 2x3, nd: a whole file, byte for byte as the probes write it.
constexpr unsigned char kExample[110] = {
    0x24, 0x56, 0x65, 0x72, 0x73, 0x69, 0x6f, 0x6e, 0x3d, 0x31, 0x2e, 0x30, 0x0a, 0x24, 0x4f, 0x62,
    0x6a, 0x65, 0x63, 0x74, 0x2e, 0x43, 0x6f, 0x75, 0x6e, 0x74, 0x3d, 0x31, 0x0a, 0x24, 0x4f, 0x62,
    0x6a, 0x65, 0x63, 0x74, 0x2e, 0x4c, 0x65, 0x6e, 0x67, 0x74, 0x68, 0x3d, 0x31, 0x32, 0x0a, 0x66,
    0x6f, 0x72, 0x6d, 0x61, 0x74, 0x3d, 0x32, 0x0a, 0x64, 0x74, 0x79, 0x70, 0x65, 0x3d, 0x31, 0x0a,
    0x64, 0x69, 0x6d, 0x73, 0x3d, 0x32, 0x2c, 0x33, 0x0a, 0x24, 0x4f, 0x62, 0x6a, 0x65, 0x63, 0x74,
    0x2e, 0x64, 0x61, 0x74, 0x61, 0x3d, 0x30, 0x2c, 0x31, 0x32, 0x0a, 0x24, 0x45, 0x6e, 0x64, 0x3d,
    0x31, 0x0a, 0x00, 0x00, 0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38, 0xff, 0x7b, 0x00, 0x7c};
const std::string kExampleFile(reinterpret_cast<const char*>(kExample), sizeof kExample);

// A well-formed file of bytes.
std::string bin(std::string_view dims, std::string_view data, std::string_view dtype = "4") {
  const std::string length = std::to_string(data.size());
  return "$Version=1.0\n$Object.Count=1\n$Object.Length=" + length +
         "\nformat=2\ndtype=" + std::string(dtype) + "\ndims=" + std::string(dims) +
         "\n$Object.data=0," + length + "\n$End=1\n" + std::string(data);
}

class AtbBin : public testing::Test {
 protected:
  Result<Tensor> read_path(const std::string& path) {
    auto file = open(MappedFile::open(path).value());
    if (!file) return fail(file.error());
    EXPECT_EQ((*file)->format(), "atb");
    EXPECT_EQ((*file)->size(), 1u);
    note_ = (*file)->note();
    return (*file)->load(0);
  }
  Result<Tensor> read(const std::string& bytes) {
    return read_path(folder_.write("file.bin", bytes));
  }

  Result<Description> describe(const std::string& bytes) {
    const auto file = open(MappedFile::open(folder_.write("file.bin", bytes)).value());
    if (!file) return fail(file.error());
    return (*file)->describe(0);
  }

  Error refuse(const std::string& bytes) {
    const auto tensor = read(bytes);
    EXPECT_FALSE(tensor);
    if (tensor) return Error(ErrorCode::kUsage);
    EXPECT_FALSE(tensor.error().path().empty());
    return tensor.error();
  }

  TempFolder folder_;
  std::string note_;
};

TEST_F(AtbBin, ReadsTheDocumentedExample) {
  const auto tensor = read(kExampleFile);
  ASSERT_TRUE(tensor) << tensor.error().text();
  EXPECT_EQ(tensor->dtype(), DType::kFloat16);
  EXPECT_THAT(tensor->shape(), ElementsAre(2, 3));
  EXPECT_THAT(values_of<uint16_t>(*tensor),
              ElementsAre(0x0000, 0x3c00, 0xc000, 0x3800, 0x7bff, 0x7c00));
  EXPECT_EQ(note_, "");
}

TEST_F(AtbBin, ParsesTheHeaderAlone) {
  const auto header = parse_header(std::as_bytes(std::span(kExampleFile)).first(98));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->format, kFormatNd);
  EXPECT_EQ(header->dtype_code, 1);
  EXPECT_THAT(header->dims, ElementsAre(2, 3));
  EXPECT_EQ(header->object_length_bytes, 12u);
  EXPECT_EQ(header->header_bytes, 98u);
  EXPECT_TRUE(header->has_data);
  EXPECT_FALSE(header->has_statistics);
}

TEST_F(AtbBin, RefusesEveryTruncation) {
  for (size_t size = 0; size < kExampleFile.size(); ++size)
    EXPECT_EQ(refuse(kExampleFile.substr(0, size)).code(), ErrorCode::kCorrupt) << size;
}

TEST_F(AtbBin, SaysHowManyBytesAreMissing) {
  EXPECT_THAT(refuse(kExampleFile.substr(0, 105)).text(),
              HasSubstr("need 12 data bytes but 7 are there"));
}

TEST_F(AtbBin, AcceptsCarriageReturnsAnyOrderAndUnknownNames) {
  const auto tensor = read(
      "dims=3\r\n$Made.By=someone\r\ndtype=4\r\n$Object.data=0,3\r\ncolour=blue\r\n$Object.Length="
      "3\r\n$End=1\r\n"
      "\n\r\n");
  ASSERT_TRUE(tensor) << tensor.error().text();
  EXPECT_THAT(values_of<uint8_t>(*tensor), ElementsAre('\n', '\r', '\n'));
  EXPECT_EQ(note_, "");
}

TEST_F(AtbBin, HonoursTheObjectsOffset) {
  const auto tensor = read("$Object.Length=2\ndtype=4\ndims=2\n$Object.data=3,2\n$End=1\nabcde");
  EXPECT_THAT(values_of<uint8_t>(tensor.value()), ElementsAre('d', 'e'));
  EXPECT_EQ(note_, "");
  EXPECT_EQ(refuse("dtype=4\ndims=2\n$Object.data=4,2\n$End=1\nabcde").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(refuse("dtype=4\ndims=2\n$Object.data=18446744073709551615,2\n$End=1\nabcde").code(),
            ErrorCode::kCorrupt);
}

TEST_F(AtbBin, NotesALengthThatDisagreesWhenThePayloadIsRight) {
  EXPECT_TRUE(read("$Object.Length=1\ndtype=4\ndims=2\n$Object.data=0,2\n$End=1\nab"));
  EXPECT_THAT(note_, HasSubstr("$Object.Length is 1"));
  EXPECT_TRUE(read("$Object.Length=1\ndtype=4\ndims=2\n$Object.data=0,1\n$End=1\nab"));
  EXPECT_THAT(note_, HasSubstr("says 1 data bytes where the dims need 2"));
  EXPECT_TRUE(read("$Object.Length=9\ndtype=4\ndims=2\n$End=1\nab"));
  EXPECT_THAT(note_, HasSubstr("says 9 data bytes where the dims need 2"));
}

TEST_F(AtbBin, ReadsTheFirstOfTwoConcatenatedRecordsAndSaysSo) {
  EXPECT_THAT(values_of<uint8_t>(read(bin("2", "ab") + bin("2", "cd")).value()),
              ElementsAre('a', 'b'));
  EXPECT_THAT(note_, HasSubstr("bytes follow the data"));
  // The first is short: the second one's header must not pass for its data.
  EXPECT_EQ(refuse(bin("4", "ab") + bin("4", "cdef")).code(), ErrorCode::kCorrupt);
}

TEST_F(AtbBin, SaysThatADescriptionHasNoData) {
  const std::string description =
      "$Version=1.0\n$Object.Count=0\n$Object.Length=0\nformat=2\ndtype=1\ndims=2,3\n";
  for (const std::string& tail :
       {std::string("$End=1\n"), std::string("$End=1"), "$End=1\n" + description + "$End=1\n"}) {
    const Error error = refuse(description + tail);
    EXPECT_THAT(error.message(), StartsWith("tensor has no data."));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
  const Error error = refuse(description + "max=1.0\nmin=0.0\nmean=0.5\nl2norm=2.0\n$End=1\n");
  EXPECT_THAT(error.message(), StartsWith("tensor has no data."));
  EXPECT_THAT(error.message(), HasSubstr("statistics"));
}

TEST_F(AtbBin, DescribesATensorWhoseDataItDoesNotHold) {
  const std::string header = "$Object.Count=0\n$Object.Length=0\ndtype=27\ndims=2,3\n";
  const auto described = describe(header + "$End=1\n");
  ASSERT_TRUE(described) << described.error().text();
  EXPECT_EQ(described->dtype, DType::kBFloat16);
  EXPECT_THAT(described->shape, ElementsAre(2, 3));
  EXPECT_FALSE(described->has_data);
  EXPECT_FALSE(described->statistics);
  const auto measured =
      describe(header + "max=1.5\nmin=-2.000000\nmean=-nan\nl2norm=inf\n$End=1\n");
  ASSERT_TRUE(measured->statistics);
  EXPECT_EQ(measured->statistics->maximum, 1.5);
  EXPECT_EQ(measured->statistics->minimum, -2);
  EXPECT_TRUE(std::isnan(measured->statistics->mean));
  EXPECT_TRUE(std::isinf(measured->statistics->l2_norm));
  EXPECT_EQ(measured->statistics->rounding, 5e-7) << "six decimals";
}

TEST_F(AtbBin, HasNoStatisticsWhereOneOfThemIsNoNumber) {
  const std::string header = "$Object.Count=0\ndtype=1\ndims=2\n";
  for (const char* lines : {"max=N/A\nmin=N/A\nmean=N/A\nl2norm=N/A\n", "max=1\nmin=0\nmean=0.5\n",
                            "max=(1,2)\nmin=0\nmean=0\nl2norm=1\n"}) {
    const auto described = describe(header + lines + "$End=1\n");
    ASSERT_TRUE(described) << lines;
    EXPECT_FALSE(described->statistics) << lines;
    EXPECT_THAT(refuse(header + lines + "$End=1\n").message(), HasSubstr("statistics")) << lines;
  }
  EXPECT_EQ(refuse(header + "max=1\nmax=2\n$End=1\n").code(), ErrorCode::kCorrupt);
}

TEST_F(AtbBin, DescribesWholeTensorsByTheirData) {
  const auto whole = describe(bin("2", "ab"));
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->has_data);
  EXPECT_FALSE(whole->statistics);
  EXPECT_TRUE(describe("$Object.Count=0\ndtype=1\ndims=0\n$End=1\n")->has_data) << "needs none";
  EXPECT_FALSE(describe(bin("4", "ab"))) << "what is cut short is no description";
  EXPECT_FALSE(describe("$Object.Count=0\ndtype=99\ndims=2\n$End=1\n"));
}

TEST_F(AtbBin, ReadsScalarsAndEmptyTensors) {
  EXPECT_THAT(read(bin("", "a")).value().shape(), ElementsAre());
  EXPECT_THAT(read(bin("3,0", "")).value().shape(), ElementsAre(3, 0));
  EXPECT_THAT(read("$Object.Count=0\n$Object.Length=0\ndtype=1\ndims=0\n$End=1\n").value().shape(),
              ElementsAre(0));
  EXPECT_EQ(refuse(bin("", "")).code(), ErrorCode::kCorrupt);
}

TEST_F(AtbBin, ReadsEveryTypeCodeThatAitKnows) {
  const std::pair<int, DType> types[] = {
      {0, DType::kFloat32},       {1, DType::kFloat16},     {2, DType::kInt8},
      {3, DType::kInt32},         {4, DType::kUInt8},       {6, DType::kInt16},
      {7, DType::kUInt16},        {8, DType::kUInt32},      {9, DType::kInt64},
      {10, DType::kUInt64},       {11, DType::kFloat64},    {12, DType::kBool},
      {16, DType::kComplex64},    {17, DType::kComplex128}, {27, DType::kBFloat16},
      {33, DType::kComplex32},    {35, DType::kFloat8E5M2}, {36, DType::kFloat8E4M3FN},
      {37, DType::kFloat8E8M0FNU}};
  for (const auto& [code, dtype] : types) {
    const auto tensor =
        read(bin("2", std::string(2 * size_bytes(dtype), '\1'), std::to_string(code)));
    ASSERT_TRUE(tensor) << code;
    EXPECT_EQ(tensor->dtype(), dtype) << code;
    EXPECT_EQ(note_, "") << code;
  }
}

TEST_F(AtbBin, NamesTypeCodesItDoesNotRead) {
  const std::pair<int, std::string> codes[] = {
      {-1, "undefined"},   {13, "string"},      {30, "uint1"},  {34, "hifloat8"},
      {38, "float6_e3m2"}, {40, "float4_e2m1"}, {5, "unknown"}, {99, "unknown"}};
  for (const auto& [code, word] : codes) {
    const Error error = refuse(bin("2", "ab", std::to_string(code)));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.text(), HasSubstr("dtype " + std::to_string(code) + " (" + word + ")"));
  }
}

TEST_F(AtbBin, ReadsInt4AsAsManyBytesAsThereAre) {
  for (const std::string_view dims : {"2,4", "2,2"}) {  // counted in values, counted in bytes
    const auto tensor = read(bin(dims, "abcd", "29")).value();
    EXPECT_EQ(tensor.dtype(), DType::kInt4Packed);
    EXPECT_THAT(tensor.shape(), ElementsAre(4));
    EXPECT_THAT(note_, HasSubstr("two int4 values share a byte"));
  }
  EXPECT_EQ(refuse("$Object.Length=18446744073709551615\ndtype=29\ndims=4\n$End=1\nab").code(),
            ErrorCode::kCorrupt);
  EXPECT_THAT(refuse("$Object.Count=0\n$Object.Length=0\ndtype=29\ndims=4\n$End=1\n").message(),
              StartsWith("tensor has no data."));
}

TEST_F(AtbBin, NotesFormatsThatAreNotConverted) {
  EXPECT_TRUE(read("format=29\ndtype=4\ndims=2\n$End=1\nab"));
  EXPECT_THAT(note_, HasSubstr("29 (fractal_nz)"));
  EXPECT_TRUE(read("format=77\ndtype=4\ndims=2\n$End=1\nab"));
  EXPECT_THAT(note_, HasSubstr("77 (unknown)"));
}

TEST_F(AtbBin, RefusesBadHeaders) {
  for (const std::string_view header :
       {"$Version=1.0\ndims=2\n$End=1\nab", "$Version=1.0\ndtype=4\n$End=1\nab",
        "dtype=4\ndims=2\nab", "dtype=4\nhello\n$End=1\nab", "dtype=four\ndims=2\n$End=1\nab",
        "dtype=4\ndims=2,\n$End=1\nab", "dtype=4\ndims=2;1\n$End=1\nab",
        "dtype=4\ndims=-2\n$End=1\nab", "dtype=4\ndims=99999999999999999999\n$End=1\nab",
        "dtype=0\ndims=4611686018427387904,4\n$End=1\nab",
        "dtype=0\ndims=4611686018427387904\n$End=1\nab", "dtype=4\ndims=2\ndims=2\n$End=1\nab",
        "dtype=4\ndims=2\n$Object.data=0\n$End=1\nab",
        "dtype=4\ndims=2\n$Object.data=0,2,3\n$End=1\nab",
        "dtype=4\ndims=2\n$Object.Length=-2\n$End=1\nab"})
    EXPECT_EQ(refuse(std::string(header)).code(), ErrorCode::kCorrupt) << header;
  std::string rank = "dtype=4\ndims=1";
  for (size_t i = 0; i < kMaxRank; ++i) rank += ",1";
  EXPECT_EQ(refuse(rank + "\n$End=1\na").code(), ErrorCode::kCorrupt);
}

TEST_F(AtbBin, GivesUpOnHeadersBeyondTheLimit) {
  const std::string filler = "x=" + std::string(kMaxHeaderBytes, 'y') + "\n";
  EXPECT_THAT(refuse("$Version=1.0\n" + filler + "dtype=4\ndims=1\n$End=1\na").text(),
              HasSubstr("no $End line"));
}

std::string link_to(std::string_view target, std::string_view dims = "2") {
  return "$Version=1.0\n$Object.Count=0\n$Object.Length=0\nformat=2\ndtype=4\ndims=" +
         std::string(dims) + "\ndata=" + std::string(target) + "\n$End=1\n";
}

TEST_F(AtbBin, FollowsLinksInsideTheDump) {
  folder_.write("ait_dump/tensors/0_7/0/after/outtensor0.bin", bin("2", "ab"));
  const auto from = [&](std::string_view target) {
    return folder_.write("ait_dump/tensors/0_7/1/before/intensor0.bin", link_to(target));
  };
  EXPECT_THAT(values_of<uint8_t>(read_path(from("../../0/after/outtensor0.bin")).value()),
              ElementsAre('a', 'b'));
  const auto absolute = folder_.path() / "ait_dump/tensors/0_7/0/after/outtensor0.bin";
  EXPECT_TRUE(read_path(from(absolute.string())));
  EXPECT_EQ(read_path(from("../../0/after/outtensor9.bin")).error().code(), ErrorCode::kNotFound);
}

TEST_F(AtbBin, RefusesLinksThatLeaveTheDump) {
  const std::string outside = folder_.write("secret.bin", bin("2", "ab"));
  folder_.write("ait_dump_evil/x.bin", bin("2", "ab"));
  std::filesystem::create_directories(folder_.path() / "ait_dump/tensors");
  std::filesystem::create_symlink(outside, folder_.path() / "ait_dump/tensors/alias.bin");
  for (const std::string& target :
       {outside, std::string("../../secret.bin"), std::string("alias.bin"),
        std::string("../../ait_dump_evil/x.bin"), std::string("/etc/passwd"),
        std::string("../../nowhere.bin"), std::string("a\0b", 3)}) {
    const auto tensor = read_path(folder_.write("ait_dump/tensors/a.bin", link_to(target)));
    ASSERT_FALSE(tensor) << target;
    EXPECT_EQ(tensor.error().code(), ErrorCode::kRefused) << tensor.error().text();
  }
}

TEST_F(AtbBin, KeepsLinksInTheFilesOwnFolderWhereThereIsNoDump) {
  folder_.write("run/other.bin", bin("2", "ab"));
  folder_.write("else.bin", bin("2", "ab"));
  EXPECT_TRUE(read_path(folder_.write("run/a.bin", link_to("other.bin"))));
  EXPECT_EQ(read_path(folder_.write("run/a.bin", link_to("../else.bin"))).error().code(),
            ErrorCode::kRefused);
}

TEST_F(AtbBin, LooksForNumbersOfOperationsInTheRoundOfTheFileAlone) {
  const std::string round = "x/0_4711/3";
  folder_.write(round + "/13_Layer/after/outtensor0.bin", bin("2", "ab"));
  EXPECT_TRUE(read_path(
      folder_.write(round + "/13_Layer/1_Add/before/intensor0.bin", link_to("13_outtensor0.bin"))));
  // What lies between is no operation's folder, so that the number above it is no round.
  EXPECT_FALSE(read_path(folder_.write(round + "/other/13_Layer/1_Add/before/intensor0.bin",
                                       link_to("13_outtensor0.bin"))));
  EXPECT_FALSE(
      read_path(folder_.write(round + "/before/intensor0.bin", link_to("outtensor0.bin"))));
}

TEST_F(AtbBin, FollowsOneLinkOnlyAndOnlyToTheSameKindOfTensor) {
  folder_.write("data.bin", bin("2", "ab"));
  folder_.write("link.bin", link_to("data.bin"));
  EXPECT_EQ(refuse(link_to("link.bin")).code(), ErrorCode::kRefused);
  EXPECT_EQ(refuse(link_to("file.bin")).code(), ErrorCode::kRefused);
  EXPECT_EQ(refuse(link_to("data.bin", "3")).code(), ErrorCode::kCorrupt);
  folder_.write("half.bin", bin("1", "ab", "1"));
  EXPECT_EQ(refuse(link_to("half.bin")).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ait::formats::atb_bin
