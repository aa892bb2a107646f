#include "capture/folder_index.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "record/crc32.h"
#include "test_files.h"

namespace ait::capture {
namespace {

namespace fs = std::filesystem;

// A rank with two rounds of two units in a folder of its own, and a cache beside it.
class FolderIndexTest : public testing::Test {
 protected:
  FolderIndexTest() {
    for (const std::string round : {"0", "1"}) {
      folder_.write("rank/" + round + "/0_Word/after/outtensor0.bin", "x");
      folder_.write("rank/" + round + "/1_Layer/after/outtensor0.bin", "x");
      folder_.write("rank/" + round + "/1_Layer/0_Linear/after/outtensor0.bin", "x");
    }
  }

  // The folders of a test are as new as can be: those that are to be believed at once are so by these rules.
  FolderIndexRules rules(std::chrono::seconds settled_after = std::chrono::seconds(-3600)) const {
    return {UserCache((folder_.path() / "cache").native()), 1, settled_after};
  }

  struct Listed {
    std::map<std::string, std::string> files;  // "0/1_Layer", with a space after each
    size_t known = 0;                          // units that were not listed
  };
  Listed list(const FolderIndexRules& with) const {
    FolderIndex index(rank().native(), with);
    Listed out;
    for (const std::string round : {"0", "1"}) {
      const FolderIndex::Round folder(index, round);
      for (const std::string unit : {"0_Word", "1_Layer"}) {
        std::vector<Error> problems;
        auto listing = folder.list(unit, problems);
        EXPECT_TRUE(problems.empty());
        std::string& files = out.files[round + "/" + unit];
        each_file(listing.files, [&](std::string_view file) { files += std::string(file) + " "; });
        out.known += listing.known != nullptr ? 1 : 0;
        index.keep(round, unit, std::move(listing));
      }
    }
    index.save();
    return out;
  }
  Listed list() const { return list(rules()); }
  // What is there, whatever an index says.
  Listed truth() const { return list({UserCache(""), 1, {}}); }

  // Lists once, changes something and lists again: all that is seen is true, and some of it was known.
  template <typename Change>
  void expect_noticed(const Change& change, size_t still_known = 3) {
    list();
    ASSERT_EQ(list().known, 4U);
    ASSERT_EQ(::usleep(20'000), 0);  // older kernels keep times by ticks of some milliseconds
    change();
    const Listed after = list();
    EXPECT_EQ(after.files, truth().files);
    EXPECT_EQ(after.known, still_known);
    EXPECT_EQ(list().known, 4U);  // the change was noted
  }

  fs::path rank() const { return folder_.path() / "rank"; }
  fs::path cached() const {
    for (const auto& entry : fs::directory_iterator(folder_.path() / "cache")) return entry.path();
    return {};
  }
  std::string cached_bytes() const {
    std::ifstream in(cached(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  FolderIdentity identity() const {
    struct stat status{};
    EXPECT_EQ(::stat(rank().c_str(), &status), 0);
    return {fs::canonical(rank()).native(), status.st_dev, status.st_ino};
  }

  formats::TempFolder folder_;
};

TEST_F(FolderIndexTest, IsUsedWhereNothingChanged) {
  const Listed first = list();
  EXPECT_EQ(first.known, 0U);
  EXPECT_EQ(first.files.at("1/1_Layer"), "0_Linear/after/outtensor0.bin after/outtensor0.bin ");
  const auto written = fs::last_write_time(cached());
  const Listed again = list();
  EXPECT_EQ(again.known, 4U);
  EXPECT_EQ(again.files, first.files);
  EXPECT_GE(fs::last_write_time(cached()), written);
}

TEST_F(FolderIndexTest, NoticesAFileThatWasAdded) {
  expect_noticed([&] { folder_.write("rank/1/1_Layer/0_Linear/after/outtensor1.bin", "x"); });
}

TEST_F(FolderIndexTest, NoticesAFileThatWasRemoved) {
  expect_noticed([&] { fs::remove(rank() / "0/0_Word/after/outtensor0.bin"); });
}

TEST_F(FolderIndexTest, NoticesAFileThatWasRenamed) {
  expect_noticed([&] {
    fs::rename(rank() / "0/1_Layer/after/outtensor0.bin",
               rank() / "0/1_Layer/after/outtensor7.bin");
  });
}

TEST_F(FolderIndexTest, NoticesAFolderThatWasAdded) {
  expect_noticed([&] { folder_.write("rank/1/0_Word/before/intensor0.bin", "x"); });
}

TEST_F(FolderIndexTest, NoticesAFolderInThePlaceOfAnother) {
  folder_.write("other/outtensor3.bin", "x");
  expect_noticed([&] {
    fs::remove_all(rank() / "1/0_Word/after");
    fs::rename(folder_.path() / "other", rank() / "1/0_Word/after");
  });
}

TEST_F(FolderIndexTest, NoticesALinkInThePlaceOfAFolder) {
  expect_noticed(
      [&] {
        fs::rename(rank() / "1/0_Word/after", folder_.path() / "moved");
        fs::create_symlink(folder_.path() / "moved", rank() / "1/0_Word/after");
      },
      3);
}

TEST_F(FolderIndexTest, NoticesAChangeWhoseTimeWasPutBack) {
  expect_noticed([&] {
    const fs::path after = rank() / "0/0_Word/after";
    struct stat status{};
    ASSERT_EQ(::stat(after.c_str(), &status), 0);
    fs::rename(after / "outtensor0.bin", after / "outtensor9.bin");
    const std::array<timespec, 2> times = {status.st_atim, status.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, after.c_str(), times.data(), 0), 0);
  });
}

TEST_F(FolderIndexTest, DoesNotKeepWhatMayChangeInTheSameTick) {
  list(rules(std::chrono::seconds(2)));
  EXPECT_FALSE(fs::exists(folder_.path() / "cache"));
  ASSERT_EQ(::usleep(2'100'000), 0);
  list(rules(std::chrono::seconds(2)));
  folder_.write("rank/1/1_Layer/after/outtensor1.bin", "x");
  // What is too new is listed every time, the rest is known.
  for (int i = 0; i < 3; ++i) {
    const Listed now = list(rules(std::chrono::seconds(2)));
    EXPECT_EQ(now.known, 3U);
    EXPECT_EQ(now.files, truth().files);
  }
}

TEST_F(FolderIndexTest, IsNotWrittenForFewFoldersOrWithoutACache) {
  FolderIndexRules many = rules();
  many.least_folders = 1000;
  list(many);
  EXPECT_FALSE(fs::exists(folder_.path() / "cache"));
  truth();
  EXPECT_FALSE(fs::exists(folder_.path() / "cache"));
}

TEST_F(FolderIndexTest, WritesNothingIntoTheDump) {
  std::vector<std::string> before;
  for (const auto& entry : fs::recursive_directory_iterator(rank())) before.push_back(entry.path());
  list();
  list();
  std::vector<std::string> after;
  for (const auto& entry : fs::recursive_directory_iterator(rank())) after.push_back(entry.path());
  EXPECT_EQ(before, after);
}

TEST_F(FolderIndexTest, IsNotUsedForAnotherFolderOfTheSamePath) {
  list();
  fs::rename(rank(), folder_.path() / "old");
  fs::copy(folder_.path() / "old", rank(), fs::copy_options::recursive);
  fs::remove(rank() / "0/0_Word/after/outtensor0.bin");
  const Listed after = list();
  EXPECT_EQ(after.known, 0U);
  EXPECT_EQ(after.files, truth().files);
}

TEST_F(FolderIndexTest, ForgetsRoundsThatAreGone) {
  list();
  const size_t bytes = cached_bytes().size();
  {
    FolderIndex index(rank().native(), rules());
    const FolderIndex::Round round(index, "0");
    std::vector<Error> problems;
    index.keep("0", "0_Word", round.list("0_Word", problems));
    index.save();
  }
  EXPECT_LT(cached_bytes().size(), bytes);
  EXPECT_EQ(list().known, 1U);
}

TEST_F(FolderIndexTest, TakesDamagedBytesForNone) {
  list();
  const std::string good = cached_bytes();
  const FolderIdentity of = identity();
  KnownFolders known;
  ASSERT_TRUE(known.read(good, of));
  EXPECT_EQ(known.units(), 4U);
  EXPECT_EQ(folder_index_bytes(known, of), good);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(known.read(std::string_view(good).substr(0, length), of));
    EXPECT_EQ(known.units(), 0U);
  }
  EXPECT_FALSE(known.read(good + "x", of));
  for (size_t at = 0; at < good.size(); ++at)
    for (const char flip : {'\x01', '\x80', '\xFF'}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      EXPECT_FALSE(known.read(bad, of)) << at;
    }
}

// As one would write it who knows the checksum.
std::string with_checksum(std::string bytes) {
  const uint32_t sum = record::crc32(bytes.data() + 16, bytes.size() - 16);
  for (size_t i = 0; i < 4; ++i) bytes[12 + i] = static_cast<char>((sum >> (8 * i)) & 0xFF);
  return bytes;
}

TEST_F(FolderIndexTest, SurvivesHostileBytesWithATrueChecksum) {
  list();
  const std::string good = cached_bytes();
  const FolderIdentity of = identity();
  const auto truthful = truth().files;
  KnownFolders known;
  for (size_t length = 16; length < good.size(); ++length)
    EXPECT_FALSE(known.read(with_checksum(good.substr(0, length)), of)) << length;
  for (size_t at = 16; at < good.size(); ++at)
    for (const char value : {'\x00', '\x2F', '\x7F', '\xFF'}) {
      std::string bad = good;
      bad[at] = value;
      known.read(with_checksum(bad), of);  // whatever it says of it, it comes back
    }
  // Paths that lead elsewhere are not taken, wherever they stand.
  for (const std::string_view inside : {"0_Linear/after/outtensor0.bin", "1_Layer/after"}) {
    std::string bad = good;
    bad.replace(bad.find(inside), 3, "../");
    EXPECT_FALSE(known.read(with_checksum(bad), of)) << inside;
    bad = good;
    bad.replace(bad.find(inside), 1, "/");
    EXPECT_FALSE(known.read(with_checksum(bad), of)) << inside;
  }
  // And damaged ones on disk do not change what is listed.
  for (const size_t length : {size_t{0}, size_t{7}, size_t{16}, good.size() / 2, good.size() - 1}) {
    fs::resize_file(cached(), length);
    const Listed after = list();
    EXPECT_EQ(after.files, truthful);
    EXPECT_EQ(after.known, 0U);
    EXPECT_EQ(cached_bytes(), good);
  }
}

TEST_F(FolderIndexTest, IsWrittenAndReadByManyAtOnce) {
  const auto truthful = truth().files;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(list().files, truthful);
        if (i % 5 == 0) fs::remove(cached());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(list().files, truthful);
}

TEST_F(FolderIndexTest, SaysWhatCannotBeListedEachTime) {
  folder_.write("rank/0/2_Bad/after/outtensor0.bin", "x");
  const fs::path bad = rank() / "0/2_Bad/after";
  fs::permissions(bad, fs::perms::none);
  if (::access(bad.c_str(), R_OK) == 0) {
    fs::permissions(bad, fs::perms::owner_all);
    GTEST_SKIP() << "nothing is forbidden to root";
  }
  for (int i = 0; i < 2; ++i) {
    FolderIndex index(rank().native(), rules());
    std::vector<Error> problems;
    auto listing = FolderIndex::Round(index, "0").list("2_Bad", problems);
    EXPECT_EQ(problems.size(), 1U);
    EXPECT_EQ(listing.known, nullptr);
    index.keep("0", "2_Bad", std::move(listing));
    index.save();
  }
  fs::permissions(bad, fs::perms::owner_all);
}

}  // namespace
}  // namespace ait::capture
