#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/topology_fuzzer.h"

namespace ait::graph {
namespace {

TEST(TopologyCorpus, IsReadToTheEnd) {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(AIT_SOURCE_DIR "/fuzz/corpus/fuzz_topology")) {
    SCOPED_TRACE(entry.path());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    fuzz::read_as_topology(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    ++files;
  }
  EXPECT_GT(files, 5);
}

}  // namespace
}  // namespace ait::graph
