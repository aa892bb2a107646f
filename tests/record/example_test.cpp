// The example at the head of record/writer.h.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "record/writer.h"

namespace ait::record {
namespace {

uint64_t write_tensor(const char* path) {
  const int64_t dims[] = {2, 3};
  float data[] = {1, 2, 3, 4, 5, 6};
  Writer writer;
  Job job;
  job.path = path;
  job.encoding = Encoding::kAtbBin;
  job.image = {ElementType::kFloat32, dims, 2, data, sizeof data};
  writer.submit(job);
  data[0] = 0;
  writer.flush();
  return writer.counters().failed;
}

TEST(RecordExample, WritesWhatTheTensorHeldWhenItWasSubmitted) {
  const std::string path = testing::TempDir() + "record_example.bin";
  EXPECT_EQ(write_tensor(path.c_str()), 0u);
  std::ifstream in(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const float first = 1;
  const size_t data_bytes = 6 * sizeof(float);
  ASSERT_GT(content.size(), data_bytes);
  EXPECT_EQ(content.compare(content.size() - data_bytes, sizeof first,
                            reinterpret_cast<const char*>(&first), sizeof first),
            0);
  std::filesystem::remove(path);
  EXPECT_EQ(write_tensor("/dev/null/no_folder.bin"), 1u);
}

}  // namespace
}  // namespace ait::record
