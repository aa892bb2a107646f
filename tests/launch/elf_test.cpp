#include "launch/elf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "elf_builder.h"
#include "scratch_folder.h"

namespace ait::launch {
namespace {

constexpr const char* kOld = "_ZN3atb5Probe10SaveTensorERKSsS2_S2_PKvmS2_";
constexpr const char* kNew =
    "_ZN3atb5Probe10SaveTensorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_S8_PKvmS8_";

TEST(ReadElf, KnowsTheProgramsOfThisMachine) {
  const auto shell = read_elf("/bin/sh");
  ASSERT_TRUE(shell) << shell.error().text();
  EXPECT_TRUE(shell->this_machine);
  EXPECT_TRUE(shell->has_loader);
  const auto self = read_elf("/proc/self/exe");
  ASSERT_TRUE(self) << self.error().text();
  EXPECT_TRUE(self->has_loader);
}

TEST(ReadElf, KnowsStaticAndForeignPrograms) {
  const ScratchFolder folder;
  const auto fixed = read_elf(folder.file("static", ElfBuilder().text()));
  ASSERT_TRUE(fixed) << fixed.error().text();
  EXPECT_TRUE(fixed->this_machine);
  EXPECT_FALSE(fixed->has_loader);

  ElfBuilder small;
  small.header().e_ident[EI_CLASS] = ELFCLASS32;
  ElfBuilder big_endian;
  big_endian.header().e_ident[EI_DATA] = ELFDATA2MSB;
  ElfBuilder other;
  other.header().e_machine = EM_S390;
  for (ElfBuilder* builder : {&small, &big_endian, &other}) {
    const auto facts = read_elf(folder.file("foreign", builder->text()));
    ASSERT_TRUE(facts) << facts.error().text();
    EXPECT_FALSE(facts->this_machine);
  }
}

TEST(ReadElf, RefusesWhatIsNotElf) {
  const ScratchFolder folder;
  for (const char* content : {"", "\x7f", "#!/bin/sh\n",
                              "\x7f"
                              "ELX aaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    const auto facts = read_elf(folder.file("text", content));
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code(), ErrorCode::kUnsupported);
  }
  EXPECT_EQ(read_elf(folder / "nothing").error().code(), ErrorCode::kNotFound);
}

ProbeInterface interface_of(const std::vector<std::string>& symbols, uint16_t section = 1) {
  const ScratchFolder folder;
  ElfBuilder builder;
  for (const std::string& name : symbols) builder.add_symbol(name, section);
  const auto found = read_probe_interface(folder.file("libatb.so", builder.text()));
  EXPECT_TRUE(found) << found.error().text();
  return found.value_or(ProbeInterface{});
}

TEST(ReadProbeInterface, TellsTheStringAbis) {
  EXPECT_TRUE(interface_of({"x", kOld}).old_strings);
  EXPECT_FALSE(interface_of({"x", kOld}).new_strings);
  EXPECT_TRUE(interface_of({kNew}).new_strings);
  EXPECT_FALSE(interface_of({kNew}).old_strings);
  EXPECT_TRUE(interface_of({kOld, kNew}).old_strings);
  EXPECT_TRUE(interface_of({kOld, kNew}).new_strings);
}

TEST(ReadProbeInterface, WantsADefinitionOfThisVeryFunction) {
  EXPECT_FALSE(interface_of({kOld, kNew}, SHN_UNDEF).any());
  EXPECT_FALSE(
      interface_of({"_ZN3atb5Probe10SaveTilingEPKhmRKSs", "_ZN3atb5Probe10SaveTensorE"}).any());
  EXPECT_FALSE(interface_of({}).any());
}

TEST(ReadProbeInterface, ReadsRealLibraries) {
  const auto self = read_probe_interface("/proc/self/exe");
  ASSERT_TRUE(self) << self.error().text();
  EXPECT_FALSE(self->any());
}

TEST(ReadProbeInterface, RefusesTablesThatLeaveTheFile) {
  const ScratchFolder folder;
  const auto refused = [&](auto change) {
    ElfBuilder builder;
    builder.add_symbol(kNew);
    builder.layout();
    change(builder);
    const auto found = read_probe_interface(folder.file("libatb.so", builder.text()));
    EXPECT_FALSE(found);
    return found ? ErrorCode::kUsage : found.error().code();
  };
  const uint64_t far = uint64_t{1} << 40;
  const uint64_t end = UINT64_MAX - 8;
  for (const uint64_t offset : {far, end}) {
    EXPECT_EQ(refused([&](auto& e) { e.header().e_shoff = offset; }), ErrorCode::kCorrupt);
    EXPECT_EQ(refused([&](auto& e) { e.symbol_section().sh_offset = offset; }),
              ErrorCode::kCorrupt);
    EXPECT_EQ(refused([&](auto& e) { e.symbol_section().sh_size = offset; }), ErrorCode::kCorrupt);
    EXPECT_EQ(refused([&](auto& e) { e.string_section().sh_offset = offset; }),
              ErrorCode::kCorrupt);
    EXPECT_EQ(refused([&](auto& e) { e.string_section().sh_size = offset; }), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(refused([](auto& e) { e.symbol_section().sh_entsize = 0; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& e) { e.symbol_section().sh_link = 77; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& e) { e.header().e_shentsize = 1; }), ErrorCode::kCorrupt);
  EXPECT_EQ(refused([](auto& e) { e.header().e_shnum = 0; }), ErrorCode::kUnsupported);
  EXPECT_EQ(refused([](auto& e) { e.header().e_machine = EM_S390; }), ErrorCode::kUnsupported);
}

TEST(ReadProbeInterface, PassesOverNamesThatLieOutside) {
  const ScratchFolder folder;
  ElfBuilder builder;
  builder.add_symbol(kNew);
  builder.symbols().back().st_name = UINT32_MAX;
  const auto found = read_probe_interface(folder.file("libatb.so", builder.text()));
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_FALSE(found->any());
}

// Any byte may be anything: the answer may be wrong then, but it must come.
TEST(ReadElf, SurvivesDamagedFiles) {
  const ScratchFolder folder;
  ElfBuilder builder;
  builder.add_loader();
  builder.add_symbol(kOld);
  builder.add_symbol(kNew);
  const std::string whole = builder.text();
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole.substr(0, round % 3 == 0 ? random() % whole.size() : whole.size());
    for (int i = 0; i < 4 && !damaged.empty(); ++i)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    const std::string path = folder.file("damaged", damaged);
    [[maybe_unused]] const auto facts = read_elf(path);
    [[maybe_unused]] const auto found = read_probe_interface(path);
  }
}

}  // namespace
}  // namespace ait::launch
