#include "formats/zip.h"

#include <gmock/gmock.h>

#include "zip_builder.h"

namespace ait::formats {
namespace {

using testing::HasSubstr;

class Zip : public testing::Test {
 protected:
  Result<ZipArchive> open(const std::string& bytes) { return ZipArchive::open(folder_.map(bytes)); }

  Result<std::string> read(const std::string& bytes, std::string_view name) {
    auto archive = open(bytes);
    if (!archive) return fail(archive.error());
    const auto contents = archive->contents(*archive->find(name));
    if (!contents) return fail(contents.error());
    return std::string(reinterpret_cast<const char*>(contents->bytes.data()),
                       contents->bytes.size());
  }

  TempFolder folder_;
};

TEST_F(Zip, ReadsStoredAndDeflatedMembers) {
  const std::string text(10000, 'x');
  const std::string bytes =
      build_zip({{.name = "stored", .data = "abc"}, deflated("deflated", text)});
  EXPECT_EQ(read(bytes, "stored").value(), "abc");
  EXPECT_EQ(read(bytes, "deflated").value(), text);
}

TEST_F(Zip, ReadsEmptyMembersAndEmptyArchives) {
  const std::string bytes = build_zip({{.name = "nothing"}, deflated("less", "")});
  EXPECT_EQ(read(bytes, "nothing").value(), "");
  EXPECT_EQ(read(bytes, "less").value(), "");
  EXPECT_TRUE(open(build_zip({})).value().members().empty());
}

TEST_F(Zip, KeepsTheDirectorysOrderAndFindsByName) {
  const auto archive = open(build_zip({{.name = "b"}, {.name = "c"}, {.name = "a"}})).value();
  ASSERT_EQ(archive.members().size(), 3u);
  EXPECT_EQ(archive.members()[0].name, "b");
  EXPECT_EQ(archive.members()[2].name, "a");
  EXPECT_EQ(archive.find("c"), &archive.members()[1]);
  EXPECT_EQ(archive.find("d"), nullptr);
  EXPECT_EQ(archive.find(""), nullptr);
}

TEST_F(Zip, ReadsZip64SizesOffsetsAndEndRecords) {
  const std::string bytes = build_zip({{.name = "first", .data = "1", .zip64 = true},
                                       {.name = "second", .data = "22", .zip64 = true}},
                                      {.zip64 = true});
  EXPECT_EQ(read(bytes, "first").value(), "1");
  EXPECT_EQ(read(bytes, "second").value(), "22");
}

TEST_F(Zip, SkipsPaddingThatOnlyTheLocalHeaderKnows) {
  EXPECT_EQ(
      read(build_zip({{.name = "a", .data = "abc", .local_extra = std::string(60, 'Z')}}), "a")
          .value(),
      "abc");
}

TEST_F(Zip, FindsTheEndBeforeALongCommentThatLooksLikeOne) {
  const std::string comment = "PK\5\6" + std::string(60000, '\0');
  EXPECT_EQ(read(build_zip({{.name = "a", .data = "abc"}}, {.comment = comment}), "a").value(),
            "abc");
}

TEST_F(Zip, RefusesEveryTruncation) {
  const std::string whole =
      build_zip({{.name = "a", .data = "abc"}, deflated("b", std::string(100, 'b'))});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto archive = open(whole.substr(0, size));
    ASSERT_FALSE(archive) << size;
    EXPECT_EQ(archive.error().code(), ErrorCode::kCorrupt);
  }
}

// Whatever single byte is wrong, the answer is an error or some bytes: never a crash or a wild
// read.
TEST_F(Zip, SurvivesEveryFlippedByte) {
  const std::string whole =
      build_zip({{.name = "a", .data = "abc", .zip64 = true}, deflated("b", std::string(100, 'b'))},
                {.zip64 = true});
  size_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    const auto archive = open(bytes);
    if (!archive) {
      ++refused;
      continue;
    }
    for (const ZipMember& member : archive->members())
      if (!archive->contents(member)) ++refused;
  }
  EXPECT_GT(refused, 60u);
}

TEST_F(Zip, RefusesMoreMembersThanTheDirectoryCanHold) {
  const auto archive =
      open(build_zip({{.name = "a"}}, {.zip64 = true, .claimed_entries = uint64_t{1} << 60}));
  ASSERT_FALSE(archive);
  EXPECT_THAT(archive.error().text(), HasSubstr("cannot hold the 1152921504606846976 members"));
}

TEST_F(Zip, RefusesADirectoryWithHiddenMembers) {
  EXPECT_EQ(open(build_zip({{.name = "a"}, {.name = "b"}}, {.claimed_entries = 1})).error().code(),
            ErrorCode::kCorrupt);
}

TEST_F(Zip, RefusesADirectoryOutsideTheFile) {
  for (const uint64_t size : {uint64_t{1000}, ~uint64_t{0}}) {
    const auto archive =
        open(build_zip({{.name = "a"}}, {.zip64 = true, .claimed_directory_bytes = size}));
    ASSERT_FALSE(archive);
    EXPECT_EQ(archive.error().code(), ErrorCode::kCorrupt);
  }
}

TEST_F(Zip, RefusesTheSameNameTwice) {
  const auto archive = open(
      build_zip({{.name = "twin", .data = "1"}, {.name = "x"}, {.name = "twin", .data = "2"}}));
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(archive.error().text(), HasSubstr("twin twice"));
}

TEST_F(Zip, RefusesMembersThatShareTheirData) {
  const auto archive = open(build_zip(
      {{.name = "a", .data = "abc"}, {.name = "b", .data = "abc", .claimed_offset_bytes = 0}}));
  ASSERT_FALSE(archive);
  EXPECT_THAT(archive.error().text(), HasSubstr("runs into its neighbour"));
}

TEST_F(Zip, RefusesAMemberThatReachesIntoTheDirectory) {
  // Small enough for the bare local header, too large once its name and extra field are counted.
  const auto contents = read(build_zip({{.name = "abcdefgh",
                                         .data = "xyz",
                                         .claimed_compressed_bytes = 8,
                                         .claimed_uncompressed_bytes = 8}}),
                             "abcdefgh");
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code(), ErrorCode::kCorrupt);
}

TEST_F(Zip, RefusesSizesBeyondTheFileWithoutOverflow) {
  for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 29}) {
    const auto archive = open(
        build_zip({{.name = "a", .data = "abc", .claimed_compressed_bytes = size, .zip64 = true}}));
    ASSERT_FALSE(archive);
    EXPECT_EQ(archive.error().code(), ErrorCode::kCorrupt);
  }
}

TEST_F(Zip, RefusesAStoredMemberOfTwoSizes) {
  EXPECT_EQ(read(build_zip({{.name = "a", .data = "abc", .claimed_uncompressed_bytes = 4}}), "a")
                .error()
                .code(),
            ErrorCode::kCorrupt);
}

TEST_F(Zip, RefusesABombBeforeMakingRoomForIt) {
  ZipEntry bomb = deflated("bomb", std::string(1000, '0'));
  bomb.zip64 = true;
  bomb.claimed_uncompressed_bytes = uint64_t{1} << 50;
  const auto contents = read(build_zip({bomb}), "bomb");
  ASSERT_FALSE(contents);
  EXPECT_EQ(contents.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(contents.error().text(), HasSubstr("more than deflate can do"));
}

TEST_F(Zip, RefusesDeflatedDataOfAnotherSizeOrContent) {
  for (const uint64_t claimed : {999, 1001}) {
    ZipEntry entry = deflated("a", std::string(1000, 'x'));
    entry.claimed_uncompressed_bytes = claimed;
    EXPECT_THAT(read(build_zip({entry}), "a").error().text(), HasSubstr("does not inflate"));
  }
  ZipEntry entry = deflated("a", std::string(1000, 'x'));
  entry.claimed_crc32 = 1;
  EXPECT_THAT(read(build_zip({entry}), "a").error().text(), HasSubstr("checksum"));
}

TEST_F(Zip, NamesTheMemberAndMethodItCannotRead) {
  const auto encrypted = read(build_zip({{.name = "secret", .flags = 1}}), "secret");
  EXPECT_EQ(encrypted.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(encrypted.error().text(), HasSubstr("secret is encrypted"));
  const auto lzma = read(build_zip({{.name = "small", .method = 14}}), "small");
  EXPECT_EQ(lzma.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(lzma.error().text(), HasSubstr("small is compressed by method 14"));
}

TEST_F(Zip, NeedsALocalHeaderWhereTheDirectorySays) {
  std::string bytes = build_zip({{.name = "a", .data = "abc"}});
  bytes[0] = 'X';
  EXPECT_THAT(read(bytes, "a").error().text(), HasSubstr("no local header"));
}

TEST_F(Zip, SniffsByTheFirstFourBytes) {
  const auto sniff = [](std::string_view text) {
    return ZipArchive::sniff(std::as_bytes(std::span(text)));
  };
  EXPECT_TRUE(sniff("PK\3\4 and so on"));
  EXPECT_TRUE(sniff(build_zip({})));
  EXPECT_FALSE(sniff("PK\3"));
  EXPECT_FALSE(sniff("\x93NUMPY"));
  EXPECT_FALSE(sniff(""));
}

}  // namespace
}  // namespace ait::formats
