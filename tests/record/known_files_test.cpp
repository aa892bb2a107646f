#include "record/known_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../launch/scratch_folder.h"
#include "record/torch_zip_encoder.h"
#include "record/writer.h"

namespace ait::record {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

uint64_t links_of(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_nlink : 0;
}

class KnownFilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Writes the values as the writer does. Whether they became a link.
  bool store(const std::string& name, std::vector<float>& values) {
    FileImage file;
    const int64_t dims[] = {static_cast<int64_t>(values.size())};
    const TensorImage image{ElementType::kFloat32, dims, 1, values.data(),
                            values.size() * sizeof(float)};
    EXPECT_EQ(encode_torch(image, file), EncodeResult::kOk);
    if (known_.link(path(name).c_str(), file)) return true;
    EXPECT_TRUE(file.write(path(name).c_str()).ok());
    known_.remember(path(name).c_str(), file);
    return false;
  }

  ScratchFolder scratch_;
  const fs::path folder_ = scratch_.path();
  KnownFiles known_;
  std::vector<float> values_ = std::vector<float>(4096, 1.5F);
};

TEST_F(KnownFilesTest, TheSameBytesAreStoredOnce) {
  EXPECT_FALSE(store("0/a/output.pth", values_));
  EXPECT_TRUE(store("1/b/output.pth", values_));
  EXPECT_EQ(links_of(path("0/a/output.pth")), 2U);
  EXPECT_EQ(read(path("0/a/output.pth")), read(path("1/b/output.pth")));
  values_[4095] = 2;
  EXPECT_FALSE(store("2/a/output.pth", values_));
}

TEST_F(KnownFilesTest, SmallFilesAreNotLookedUp) {
  std::vector<float> few(4, 1.5F);
  EXPECT_FALSE(store("a.pth", few));
  EXPECT_FALSE(store("b.pth", few));
}

// The checksum in the header finds a candidate; it has only 32 bits.
TEST_F(KnownFilesTest, AFileWithTheSameHeadersAndOtherBytesIsNotLinked) {
  EXPECT_FALSE(store("a.pth", values_));
  {
    std::fstream file(path("a.pth"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file.put('x');
  }
  EXPECT_FALSE(store("b.pth", values_));
  EXPECT_TRUE(store("c.pth", values_));
  EXPECT_EQ(read(path("b.pth")), read(path("c.pth")));
}

TEST_F(KnownFilesTest, WhatIsGoneOrCutShortIsWrittenAnew) {
  EXPECT_FALSE(store("a.pth", values_));
  fs::remove(path("a.pth"));
  EXPECT_FALSE(store("b.pth", values_));
  fs::resize_file(path("b.pth"), 100);
  EXPECT_FALSE(store("c.pth", values_));
  EXPECT_TRUE(store("d.pth", values_));
}

TEST_F(KnownFilesTest, ANameThatIsTakenIsLeftToTheWriter) {
  EXPECT_FALSE(store("a.pth", values_));
  std::ofstream(path("b.pth")) << "old";
  EXPECT_FALSE(store("b.pth", values_));
  EXPECT_EQ(read(path("a.pth")), read(path("b.pth")));
}

TEST_F(KnownFilesTest, FilesOfOneShapeAreToldApart) {
  for (int i = 0; i < 200; ++i) {
    values_[0] = static_cast<float>(i);
    EXPECT_FALSE(store(std::to_string(i) + ".pth", values_));
  }
  EXPECT_TRUE(store("again.pth", values_));
}

TEST_F(KnownFilesTest, WritersShareWhatTheyKnow) {
  struct Seen {
    int links = 0;
    static void done(void* self, const char*, WriteStatus status) {
      static_cast<Seen*>(self)->links += status.linked ? 1 : 0;
    }
  } seen;
  Writer one({.known = &known_});
  Writer other({.known = &known_});
  const int64_t dims[] = {4096};
  for (Writer* writer : {&one, &other, &one}) {
    const std::string name = path(std::to_string(writer->counters().submitted) +
                                  (writer == &one ? "one.pth" : "other.pth"));
    Job job;
    job.path = name.c_str();
    job.image = {ElementType::kFloat32, dims, 1, values_.data(), values_.size() * sizeof(float)};
    job.done = &Seen::done;
    job.context = &seen;
    writer->submit(job);
    writer->flush();
  }
  EXPECT_EQ(seen.links, 2);
  EXPECT_EQ(links_of(path("0one.pth")), 3U);
}

TEST_F(KnownFilesTest, AJobWithoutFileOnlyHasItsTurn) {
  struct Order {
    std::vector<std::string> paths;
    static void done(void* self, const char* path, WriteStatus status) {
      EXPECT_TRUE(status.ok());
      static_cast<Order*>(self)->paths.emplace_back(path);
    }
  } order;
  Writer writer;
  const std::string first = path("first");
  for (const char* name : {first.c_str(), ""}) {
    Job job;
    job.path = name;
    job.encoding = *name == '\0' ? Encoding::kNone : Encoding::kBytes;
    job.done = &Order::done;
    job.context = &order;
    writer.submit(job);
  }
  writer.flush();
  EXPECT_EQ(order.paths, (std::vector<std::string>{first, ""}));
  EXPECT_EQ(writer.counters().written, 2U);
}

}  // namespace
}  // namespace ait::record
