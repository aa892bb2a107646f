// The files that torch itself wrote (tests/data/torch) and what they are known to hold.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "formats/registry.h"
#include "test_files.h"

namespace ait::formats {

struct KnownTensor {
  std::string name;
  std::string dtype;  // or "unsupported"
  std::string shape;
  std::string hex;
};

inline std::string torch_sample(const std::string& file) { return AIT_TEST_DATA "/torch/" + file; }

inline std::vector<KnownTensor> known_tensors(const std::string& file) {
  std::ifstream table(torch_sample("expected.txt"));
  std::vector<KnownTensor> known;
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string name_of_file;
    KnownTensor tensor;
    std::getline(fields, name_of_file, '\t');
    std::getline(fields, tensor.name, '\t');
    std::getline(fields, tensor.dtype, '\t');
    std::getline(fields, tensor.shape, '\t');
    std::getline(fields, tensor.hex, '\t');
    if (name_of_file == file) known.push_back(tensor);
  }
  return known;
}

inline std::string hex_of(const Tensor& tensor) {
  std::string bytes(tensor.view().bytes(), '\0');
  gather(tensor.view(), 0, tensor.elements(), reinterpret_cast<std::byte*>(bytes.data()));
  std::string hex;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

// Every tensor of `file`, in order, bit for bit.
inline void expect_sample(const std::string& file) {
  SCOPED_TRACE(file);
  const auto known = known_tensors(file);
  auto opened = open_tensor_file(torch_sample(file));
  ASSERT_TRUE(opened) << opened.error().text();
  ASSERT_EQ((*opened)->size(), known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    SCOPED_TRACE(known[i].name);
    EXPECT_EQ((*opened)->name(i), known[i].name);
    const auto tensor = (*opened)->load(i);
    if (known[i].dtype == "unsupported") {
      ASSERT_FALSE(tensor);
      EXPECT_EQ(tensor.error().code(), ErrorCode::kUnsupported) << tensor.error().text();
      continue;
    }
    ASSERT_TRUE(tensor) << tensor.error().text();
    EXPECT_EQ(name(tensor->dtype()), known[i].dtype);
    EXPECT_EQ(shape_text(tensor->shape()), known[i].shape);
    EXPECT_EQ(hex_of(*tensor), known[i].hex);
  }
}

}  // namespace ait::formats
