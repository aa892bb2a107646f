// Hand-built files for the readers' tests.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace ait::formats {

// Bytes of a file as a string: literals and numbers append alike.
inline std::string little_endian(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
  return out;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A folder that goes when the test ends.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ait_formats_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Parent folders are made as needed.
  std::string write(const std::string& name, std::string_view content) const {
    const auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return path.string();
  }

  std::shared_ptr<const MappedFile> map(std::string_view content) const {
    return MappedFile::open(write("file", content)).value();
  }

 private:
  std::filesystem::path path_;
};

// All elements in row-major, native order.
template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  EXPECT_EQ(sizeof(T), size_bytes(tensor.dtype()));
  std::vector<T> values(tensor.elements());
  gather(tensor.view(), 0, values.size(), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace ait::formats
