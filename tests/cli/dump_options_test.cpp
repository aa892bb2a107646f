#include "cli/dump_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parsed.h"

namespace ait::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// `ait llm dump --exec "bash run.sh"` and more.
Result<DumpOptions> parse_dump(std::vector<std::string> more) {
  std::vector<std::string> words = {"llm", "dump", "--exec", "bash run.sh"};
  words.insert(words.end(), more.begin(), more.end());
  return parse<DumpOptions>(words);
}

dump::Options dump(std::vector<std::string> more) {
  auto options = parse_dump(std::move(more));
  EXPECT_TRUE(options) << options.error().text();
  return options.value_or(DumpOptions{}).record;
}

std::string refusal(std::vector<std::string> more) {
  const auto options = parse_dump(std::move(more));
  EXPECT_FALSE(options);
  return options ? "" : options.error().text();
}

TEST(DumpOptions, HaveTheSeedsDefaults) {
  const dump::Options options = dump({});
  EXPECT_THAT(options.command, ElementsAre("bash", "run.sh"));
  EXPECT_THAT(options.types, ElementsAre("tensor"));
  EXPECT_FALSE(options.only_description);
  EXPECT_EQ(options.ids, "");
  EXPECT_THAT(options.rounds, ElementsAre(Pair(0, 0)));
  EXPECT_TRUE(options.children);
  EXPECT_EQ(options.time, 1);
  EXPECT_EQ(options.operation_name, "");
  EXPECT_FALSE(options.tiling);
  EXPECT_EQ(options.part, 2);
  EXPECT_EQ(options.output, ".");
  EXPECT_EQ(options.device, std::nullopt);
  EXPECT_EQ(options.log_level, "info");
  EXPECT_FALSE(options.dry_run);
  EXPECT_FALSE(parse_dump({})->json);
}

TEST(DumpOptions, TakeEveryShortSpellingOfTheSeed) {
  const dump::Options options =
      dump({"--type", "layer", "tensor",   "-sd",     "-ids",    "2",    "-er",     "1,3",
            "-child", "True",  "-time",    "0",       "-opname", "self", "-tiling", "-stp",
            "1",      "-o",    "aasx/sss", "-device", "1",       "-l",   "debug"});
  EXPECT_THAT(options.types, ElementsAre("layer", "tensor"));
  EXPECT_TRUE(options.only_description);
  EXPECT_EQ(options.ids, "2");
  EXPECT_THAT(options.rounds, ElementsAre(Pair(1, 3)));
  EXPECT_TRUE(options.children);
  EXPECT_EQ(options.time, 0);
  EXPECT_EQ(options.operation_name, "self");
  EXPECT_TRUE(options.tiling);
  EXPECT_EQ(options.part, 1);
  EXPECT_EQ(options.output, "aasx/sss");
  EXPECT_EQ(options.device, 1);
  EXPECT_EQ(options.log_level, "debug");
}

TEST(DumpOptions, TakeEveryLongSpellingOfTheSeed) {
  const dump::Options options = dump({"--only-save-desc",
                                      "--save-operation-ids",
                                      "3_1",
                                      "--execute-range",
                                      "2,2",
                                      "--save-operation-child",
                                      "false",
                                      "--save-time",
                                      "2",
                                      "--operation-name",
                                      "Linear",
                                      "--save-tiling",
                                      "--save-tensor-part",
                                      "0",
                                      "--output",
                                      "out",
                                      "--device-id",
                                      "0",
                                      "--log-level",
                                      "critical",
                                      "--dry-run"});
  EXPECT_TRUE(options.only_description);
  EXPECT_EQ(options.ids, "3_1");
  EXPECT_THAT(options.rounds, ElementsAre(Pair(2, 2)));
  EXPECT_FALSE(options.children);
  EXPECT_EQ(options.time, 2);
  EXPECT_EQ(options.operation_name, "linear");
  EXPECT_TRUE(options.tiling);
  EXPECT_EQ(options.part, 0);
  EXPECT_EQ(options.output, "out");
  EXPECT_EQ(options.device, 0);
  EXPECT_EQ(options.log_level, "critical");
  EXPECT_TRUE(options.dry_run);
  EXPECT_TRUE(parse_dump({"--json"})->json);
}

TEST(DumpOptions, JoinListsThatTheShellHasSplit) {
  EXPECT_EQ(dump({"-ids", "2,", "3_1"}).ids, "2,3_1");
  EXPECT_EQ(dump({"-ids", "2", ",3_1"}).ids, "2,3_1");
  EXPECT_EQ(dump({"-ids", "2", "3_1"}).ids, "2,3_1");
  EXPECT_EQ(dump({"-ids", " 2 , 3_1 ", "-sd"}).ids, "2,3_1");
  EXPECT_THAT(dump({"-er", "3,5,", "7,7"}).rounds, ElementsAre(Pair(3, 5), Pair(7, 7)));
  EXPECT_EQ(dump({"-opname", "self，Linear", "-sd"}).operation_name, "self,linear");
}

TEST(DumpOptions, KnowEveryTypeOnce) {
  EXPECT_THAT(dump({"--type", "model"}).types, ElementsAre("model", "layer"));
  EXPECT_THAT(dump({"--type", "layer", "model", "layer"}).types, ElementsAre("layer", "model"));
  EXPECT_THAT(dump({"--type", "op", "kernel", "tensor", "cpu_profiling", "onnx"}).types,
              ElementsAre("op", "kernel", "tensor", "cpu_profiling", "onnx"));
  EXPECT_THAT(refusal({"--type", "tensors"}),
              HasSubstr("model, layer, op, kernel, tensor, cpu_profiling, onnx"));
}

TEST(DumpOptions, RefuseBadIds) {
  for (const char* ids : {"a", "2,", ",2", "2,,3", "_2", "2_", "2__3", "-1", "2;3", "2.5"})
    EXPECT_THAT(refusal({"--save-operation-ids=" + std::string(ids)}),
                HasSubstr("not a legal string"))
        << ids;
}

TEST(DumpOptions, RefuseBadRanges) {
  for (const char* range :
       {"a,b", "1.5,2", "1,", "0x1,2", "9223372036854775808,9223372036854775808", "1,,2,3"})
    EXPECT_THAT(refusal({"-er", range}), HasSubstr("not a legal number")) << range;
  EXPECT_THAT(refusal({"-er", "3"}), HasSubstr("first round without a last"));
  EXPECT_THAT(refusal({"-er", "1,2,3"}), HasSubstr("first round without a last"));
  EXPECT_THAT(refusal({"-er", "5,3"}), HasSubstr("ends before it begins"));
  EXPECT_THAT(dump({"-er", "0,9223372036854775807"}).rounds, ElementsAre(Pair(0, INT64_MAX)));
}

TEST(DumpOptions, RefuseOtherBadValues) {
  EXPECT_THAT(refusal({"-child", "maybe"}), HasSubstr("boolean value expected"));
  for (const char* option : {"-time", "-stp"}) {
    for (const char* value : {"3", "x", "1.0"})
      EXPECT_THAT(refusal({option, value}), HasSubstr("invalid int value")) << option << value;
  }
  for (const char* value : {"one", "1,2", "99999999999"})
    EXPECT_THAT(refusal({"-device", value}), HasSubstr("invalid int value")) << value;
  EXPECT_THAT(refusal({"--device-id=-1"}), HasSubstr("invalid int value"));
  EXPECT_THAT(refusal({"-opname", "a|b"}), HasSubstr("invalid characters"));
  EXPECT_THAT(refusal({"-l", "loud"}), HasSubstr("critical"));
}

TEST(DumpOptions, TakeASeedWithAndWithoutItsNumber) {
  EXPECT_EQ(dump({}).seed, std::nullopt);
  EXPECT_EQ(dump({"-seed"}).seed, 2024U);
  EXPECT_EQ(dump({"-seed", "-sd"}).seed, 2024U);
  EXPECT_TRUE(dump({"-seed", "-sd"}).only_description);
  EXPECT_EQ(dump({"-seed", "7"}).seed, 7U);
  EXPECT_EQ(dump({"--seed=0"}).seed, 0U);
  EXPECT_EQ(dump({"-seed", "4294967295", "-o", "x"}).seed, UINT32_MAX);
  for (const char* value : {"x", "1.5", "-1", "4294967296", "7x"})
    EXPECT_THAT(refusal({"--seed=" + std::string(value)}), HasSubstr("can not convert")) << value;
}

TEST(DumpOptions, TakeEverySpellingOfABool) {
  for (const char* yes : {"yes", "True", "T", "y", "1"})
    EXPECT_TRUE(dump({"-child", yes}).children) << yes;
  for (const char* no : {"no", "FALSE", "f", "N", "0"})
    EXPECT_FALSE(dump({"-child", no}).children) << no;
}

TEST(DumpOptions, TakeEveryLogLevel) {
  for (const char* level : {"debug", "info", "warning", "error", "fatal", "critical"})
    EXPECT_EQ(dump({"-l", level}).log_level, level);
}

TEST(DumpOptions, NeedACommand) {
  for (const auto& words : {std::vector<std::string>{"llm", "dump"},
                            {"llm", "errcheck"},
                            {"llm", "dump", "--exec", ""},
                            {"llm", "dump", "--exec", "  "},
                            {"llm", "errcheck", "--exec", " "},
                            {"llm", "dump", "--exec", "a > b"}}) {
    const auto command = parse_command_line("ait", words, all_commands());
    ASSERT_FALSE(command);
    EXPECT_EQ(command.error().code(), ErrorCode::kUsage);
    EXPECT_THAT(command.error().text(), HasSubstr("--exec"));
  }
}

TEST(DumpOptions, WatchAllRoundsUnlessToldWhich) {
  const auto watched = dump({"--probe", "torch", "--when", "nan,norm>3"});
  EXPECT_EQ(watched.when, "nan,norm>3");
  EXPECT_EQ(watched.keep, 2);
  EXPECT_EQ(dump::rounds_text(watched.rounds), "all");
  const auto some = dump({"--probe", "torch", "--when", "every=7", "-er", "3,5", "--keep", "0"});
  EXPECT_EQ(some.keep, 0);
  EXPECT_EQ(dump::rounds_text(some.rounds), "3,5");
}

TEST(DumpOptions, MakeSketchesOfModulesAlone) {
  EXPECT_FALSE(dump({"--probe", "torch"}).sketch);
  EXPECT_TRUE(dump({"--probe", "torch", "--sketch"}).sketch);
  const auto refused = parse<DumpOptions>({"llm", "dump", "--exec", "bash run.sh", "--sketch"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("it needs --probe torch"));
}

TEST(DumpOptions, SayWhatHasNoEffect) {
  EXPECT_THAT(idle_options(dump({})), IsEmpty());
  EXPECT_THAT(idle_options(dump({"--type", "model", "onnx"})), IsEmpty());
  EXPECT_THAT(idle_options(dump({"--type", "onnx", "tensor"})),
              ElementsAre(HasSubstr("--type onnx")));
  EXPECT_THAT(idle_options(dump({"-child", "False"})), ElementsAre(HasSubstr("without -ids")));
  EXPECT_THAT(idle_options(dump({"-child", "False", "-ids", "2"})), IsEmpty());
  EXPECT_THAT(idle_options(dump({"--type", "op", "-tiling"})), ElementsAre(HasSubstr("-tiling")));
  EXPECT_THAT(idle_options(dump({"--type", "op", "--dry-run"})),
              ElementsAre(HasSubstr("only counts tensors")));
}

TEST(ErrcheckOptions, TakeTheSeedsTable) {
  const auto options =
      parse<ErrcheckOptions>({"llm", "errcheck", "--exec", "bash run.sh", "--type", "overflow",
                              "--exit", "--output", "out", "-l", "error"});
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_THAT(options->check.command, ElementsAre("bash", "run.sh"));
  EXPECT_TRUE(options->check.stop);
  EXPECT_EQ(options->check.output, "out");
  EXPECT_EQ(options->check.log_level, "error");
  const auto plain = parse<ErrcheckOptions>({"llm", "errcheck", "--exec", "x", "-o", "y"});
  ASSERT_TRUE(plain) << plain.error().text();
  EXPECT_FALSE(plain->check.stop);
  const auto other = parse<ErrcheckOptions>({"llm", "errcheck", "--exec", "x", "--type", "memory"});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().text(), HasSubstr("only choice is overflow"));
}

}  // namespace
}  // namespace ait::cli
