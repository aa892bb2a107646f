#include "formats/write.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "formats/registry.h"
#include "test_files.h"
#include "zip_builder.h"

namespace ait::formats {
namespace {

namespace fs = std::filesystem;

constexpr FileFormat kFormats[] = {FileFormat::kAtbBin, FileFormat::kNpy, FileFormat::kTorch,
                                   FileFormat::kSafetensors, FileFormat::kNpz};
constexpr const char* kExtensions[] = {".bin", ".npy", ".pt", ".safetensors", ".npz"};

Tensor tensor_of(const std::string& bytes, DType dtype, const Shape& shape) {
  auto owner = std::make_shared<const std::string>(bytes);
  return Tensor::contiguous(owner, std::as_bytes(std::span(*owner)), dtype, shape).value();
}

std::string bytes_in_order(const Tensor& tensor) {
  std::string bytes(tensor.view().bytes(), '\0');
  gather(tensor.view(), 0, tensor.elements(), reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

// Any bytes, any short shape; transposed or byte-swapped now and then.
Tensor any_tensor(DType dtype) {
  const auto rank = *rc::gen::inRange<size_t>(0, 5);
  Shape shape;
  for (size_t d = 0; d < rank; ++d) shape.push_back(*rc::gen::inRange<int64_t>(0, 5));
  const size_t elements = count_elements(shape).value();
  const auto bytes =
      *rc::gen::container<std::string>(elements * size_bytes(dtype), rc::gen::arbitrary<char>());
  Tensor tensor = tensor_of(bytes, dtype, shape);
  if (*rc::gen::arbitrary<bool>()) {
    Shape reversed(shape.rbegin(), shape.rend());
    Strides strides = row_major_strides(shape);
    std::reverse(strides.begin(), strides.end());
    auto owner = std::make_shared<const std::string>(bytes);
    tensor = Tensor::strided(owner, std::as_bytes(std::span(*owner)), dtype, reversed, strides, 0)
                 .value();
  }
  if (*rc::gen::arbitrary<bool>()) tensor.set_byte_swapped(true);
  return tensor;
}

// What each format has a name for; the rest must be refused.
bool can_hold(FileFormat format, DType dtype) {
  const std::set<DType> bin_lacks = {DType::kInt4Packed, DType::kFloat4Packed,
                                     DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ};
  const std::set<DType> npy_lacks = {
      DType::kBFloat16,       DType::kFloat8E4M3FN,   DType::kFloat8E5M2,
      DType::kFloat8E4M3FNUZ, DType::kFloat8E5M2FNUZ, DType::kFloat8E8M0FNU,
      DType::kComplex32,      DType::kInt4Packed,     DType::kFloat4Packed};
  const std::set<DType> safetensors_lack = {DType::kComplex32, DType::kComplex128,
                                            DType::kInt4Packed, DType::kFloat4Packed};
  switch (format) {
    case FileFormat::kAtbBin:
      return !bin_lacks.contains(dtype);
    case FileFormat::kNpy:
    case FileFormat::kNpz:
      return !npy_lacks.contains(dtype);
    case FileFormat::kTorch:
      return dtype != DType::kInt4Packed;
    case FileFormat::kSafetensors:
      return !safetensors_lack.contains(dtype);
  }
  return false;
}

class Write : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  size_t files() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }

  TempFolder folder_;
  const Tensor ones_ = tensor_of(bytes_of<float>({1, 1}), DType::kFloat32, {2});
};

RC_GTEST_FIXTURE_PROP(Write, ReadsBackWhatItWrote, ()) {
  const auto dtype = static_cast<DType>(*rc::gen::inRange<size_t>(0, kDTypeCount));
  const auto which = *rc::gen::inRange<size_t>(0, std::size(kFormats));
  const NamedTensor named{"", any_tensor(dtype)};
  const std::string file = path(std::string("x") + kExtensions[which]);
  const auto written = write_tensor_file(file, {&named, 1}, kFormats[which]);
  if (!can_hold(kFormats[which], dtype)) {
    RC_ASSERT(!written);
    RC_ASSERT(written.error().code() == ErrorCode::kUnsupported);
    RC_ASSERT(!fs::exists(file));
    return;
  }
  RC_ASSERT(written.has_value());
  const auto back = load_single(file);
  RC_ASSERT(back.has_value());
  RC_ASSERT(back->dtype() == dtype);
  RC_ASSERT(back->shape() == named.tensor.shape());
  RC_ASSERT(bytes_in_order(*back) == bytes_in_order(named.tensor));
}

RC_GTEST_FIXTURE_PROP(Write, ReadsBackManyNamedTensors, ()) {
  const auto names = *rc::gen::unique<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127))));
  RC_PRE(!names.empty());
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names)
    tensors.push_back(
        {name, any_tensor(*rc::gen::element(DType::kFloat32, DType::kBFloat16, DType::kInt8,
                                            DType::kUInt64, DType::kFloat8E4M3FN))});
  const auto which = *rc::gen::inRange<size_t>(2, 4);
  const std::string file = path(std::string("x") + kExtensions[which]);
  const auto written = write_tensor_file(file, tensors, kFormats[which]);
  RC_ASSERT(written.has_value());
  const auto opened = open_tensor_file(file);
  RC_ASSERT(opened.has_value());
  RC_ASSERT((*opened)->size() == tensors.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto original = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
      return tensor.name == (*opened)->name(i);
    });
    RC_ASSERT(original != tensors.end());
    seen.insert(original->name);
    const auto back = (*opened)->load(i);
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->dtype() == original->tensor.dtype());
    RC_ASSERT(back->shape() == original->tensor.shape());
    RC_ASSERT(bytes_in_order(*back) == bytes_in_order(original->tensor));
  }
  RC_ASSERT(seen.size() == tensors.size());
}

TEST_F(Write, HandlesEveryTypeInEveryFormat) {
  for (size_t which = 0; which < std::size(kFormats); ++which)
    for (size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      SCOPED_TRACE(std::string(name(dtype)) + kExtensions[which]);
      std::string bytes(6 * size_bytes(dtype), '\0');
      std::iota(bytes.begin(), bytes.end(), '\1');
      const NamedTensor named{"", tensor_of(bytes, dtype, {2, 3})};
      const std::string file = path(std::string(name(dtype)) + kExtensions[which]);
      const auto written = write_tensor_file(file, {&named, 1}, kFormats[which]);
      ASSERT_EQ(written.has_value(), can_hold(kFormats[which], dtype));
      if (!written) continue;
      const auto back = load_single(file);
      ASSERT_TRUE(back) << back.error().text();
      EXPECT_EQ(back->dtype(), dtype);
      EXPECT_EQ(back->shape(), (Shape{2, 3}));
      EXPECT_EQ(bytes_in_order(*back), bytes);
    }
}

TEST_F(Write, ChoosesTheFormatByExtension) {
  EXPECT_EQ(file_format_of("a/b.bin"), FileFormat::kAtbBin);
  EXPECT_EQ(file_format_of("b.npy"), FileFormat::kNpy);
  EXPECT_EQ(file_format_of("b.npz"), FileFormat::kNpz);
  EXPECT_EQ(file_format_of("b.pt"), FileFormat::kTorch);
  EXPECT_EQ(file_format_of("b.pth"), FileFormat::kTorch);
  EXPECT_EQ(file_format_of("b.safetensors"), FileFormat::kSafetensors);
  EXPECT_EQ(file_format_of("b.txt"), std::nullopt);
}

TEST_F(Write, GivesANamelessTensorANameWhereItNeedsOne) {
  const NamedTensor named{"", ones_};
  ASSERT_TRUE(write_tensor_file(path("x.safetensors"), {&named, 1}, FileFormat::kSafetensors));
  EXPECT_EQ(open_tensor_file(path("x.safetensors")).value()->name(0), "tensor");
  ASSERT_TRUE(write_tensor_file(path("x.npz"), {&named, 1}, FileFormat::kNpz));
  EXPECT_EQ(open_tensor_file(path("x.npz")).value()->name(0), "arr_0");
}

TEST_F(Write, RefusesSeveralTensorsWhereOneFits) {
  const std::vector<NamedTensor> two = {{"a", ones_}, {"b", ones_}};
  for (const FileFormat format : {FileFormat::kAtbBin, FileFormat::kNpy})
    for (const size_t count : {0u, 2u})
      EXPECT_EQ(write_tensor_file(path("x"), std::span(two).first(count), format).error().code(),
                ErrorCode::kUsage);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Write, RefusesNamesThatTheFormatCannotCarry) {
  const std::vector<NamedTensor> twins = {{"a", ones_}, {"a", ones_}};
  const std::vector<NamedTensor> not_text = {{"\xff\xfe", ones_}};
  const std::vector<NamedTensor> reserved = {{"__metadata__", ones_}};
  for (const FileFormat format : {FileFormat::kNpz, FileFormat::kTorch, FileFormat::kSafetensors}) {
    EXPECT_EQ(write_tensor_file(path("x"), twins, format).error().code(), ErrorCode::kUsage);
    EXPECT_EQ(write_tensor_file(path("x"), not_text, format).error().code(), ErrorCode::kUsage);
  }
  EXPECT_EQ(write_tensor_file(path("x"), reserved, FileFormat::kSafetensors).error().code(),
            ErrorCode::kUsage);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Write, NamesTheTensorThatAFormatCannotHold) {
  const std::vector<NamedTensor> tensors = {
      {"good", ones_}, {"bad", tensor_of(std::string(16, '\0'), DType::kComplex128, {1})}};
  const auto written = write_tensor_file(path("x"), tensors, FileFormat::kSafetensors);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(written.error().text().find("tensor bad (complex128, [1])"), std::string::npos)
      << written.error().text();
}

TEST_F(Write, SaysThatTheDiskIsFullAndLeavesNothing) {
  // A limit on the size of files stands in for the disk; the old file must survive.
  const NamedTensor old{"", ones_};
  ASSERT_TRUE(write_tensor_file(path("x.npy"), {&old, 1}, FileFormat::kNpy));
  const NamedTensor large{"", tensor_of(std::string(1 << 16, 'x'), DType::kUInt8, {1 << 16})};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_tensor_file(path("x.npy"), {&large, 1}, FileFormat::kNpy);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), ErrorCode::kUnwritable);
  EXPECT_NE(written.error().text().find("x.npy: cannot write the file: File too large"),
            std::string::npos)
      << written.error().text();
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(load_single(path("x.npy")).value().elements(), 2u);
}

TEST_F(Write, RefusesToReplaceAFolderOrADevice) {
  const NamedTensor named{"", ones_};
  EXPECT_EQ(write_tensor_file(folder_.path(), {&named, 1}, FileFormat::kNpy).error().code(),
            ErrorCode::kUnwritable);
  EXPECT_EQ(write_tensor_file("/dev/null", {&named, 1}, FileFormat::kNpy).error().code(),
            ErrorCode::kUnwritable);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace ait::formats
