#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "parsed.h"

namespace ait::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string help(std::vector<std::string> arguments) {
  const auto command = parse_command_line("ait", std::move(arguments), all_commands());
  EXPECT_TRUE(command);
  return std::get<PrintText>(*command).text;
}

Error refused(std::vector<std::string> arguments) {
  const auto command = parse_command_line("ait", std::move(arguments), all_commands());
  EXPECT_FALSE(command);
  return command ? Error(ErrorCode::kUsage) : command.error();
}

TEST(CommandLine, UnderstandsCompareInTheSeedsSpelling) {
  const auto options = parse<CompareOptions>(
      {"llm", "compare", "-gp", "a.pth", "-mp=b.bin", "-o", "out", "--extended", "--fail-on", "nan",
       "--metric-compat", "ait", "--threads", "2", "--my-dtype", "half", "--my-shape", "2,3"});
  ASSERT_TRUE(options) << options.error().text();
  EXPECT_EQ(options->golden.path, "a.pth");
  EXPECT_EQ(options->actual.path, "b.bin");
  EXPECT_EQ(options->output_folder, "out");
  EXPECT_TRUE(options->extended);
  EXPECT_FALSE(options->json);
  EXPECT_EQ(options->fail_on.size(), 1U);
  EXPECT_EQ(options->compat, compare::MetricCompat::kAit);
  EXPECT_EQ(options->threads, 2U);
  EXPECT_FALSE(options->golden.raw);
  EXPECT_EQ(options->actual.raw->dtype, DType::kFloat16);
  EXPECT_EQ(options->actual.raw->shape, Shape({2, 3}));
}

TEST(CommandLine, UnderstandsShowAndDoctor) {
  const auto show = parse<ShowOptions>({"show", "x.npy", "--values", "0", "--name", "w"});
  ASSERT_TRUE(show) << show.error().text();
  EXPECT_EQ(show->source.path, "x.npy");
  EXPECT_EQ(show->source.name, "w");
  EXPECT_EQ(show->values, 0U);
  const auto doctor = parse<DoctorOptions>({"doctor", "--json"});
  ASSERT_TRUE(doctor) << doctor.error().text();
  EXPECT_TRUE(doctor->json);
}

TEST(CommandLine, TakesAFileThatIsNamedLikeACommand) {
  for (const char* name : {"dump", "show", "llm", "convert"}) {
    const auto show = parse<ShowOptions>({"show", name});
    ASSERT_TRUE(show) << show.error().text();
    EXPECT_EQ(show->source.path, name);
    const auto convert = parse<ConvertOptions>({"llm", "convert", name, "compare", "--to", "npy"});
    ASSERT_TRUE(convert) << convert.error().text();
    EXPECT_EQ(convert->source, name);
    EXPECT_EQ(convert->destination, "compare");
  }
}

TEST(CommandLine, ConvertNeedsASourceAndAFormatOrAFolderForStatistics) {
  const auto by_name = parse<ConvertOptions>({"llm", "convert", "a.bin", "b.npz"});
  ASSERT_TRUE(by_name) << by_name.error().text();
  EXPECT_EQ(by_name->format, formats::FileFormat::kNpz);
  const auto statistics =
      parse<ConvertOptions>({"llm", "convert", "--to-stats", "dump", "--watch", "--delete-source"});
  ASSERT_TRUE(statistics) << statistics.error().text();
  EXPECT_EQ(statistics->statistics_folder, "dump");
  EXPECT_TRUE(statistics->watch && statistics->delete_source);
  EXPECT_THAT(refused({"llm", "convert", "a.bin"}).text(), HasSubstr("the new format is missing"));
  EXPECT_THAT(refused({"llm", "convert"}).text(), HasSubstr("SRC is missing"));
  EXPECT_THAT(refused({"llm", "convert", "a.bin", "b.npy", "--watch"}).text(),
              HasSubstr("belong to --to-stats"));
}

TEST(CommandLine, HelpHasPurposeUsageExamplesOptionsAndStatus) {
  const std::string text = help({"llm", "compare", "--help"});
  for (const char* part : {"Usage: ait llm compare -gp PATH -mp PATH", "Examples:", "Input:",
                           "-gp,--golden-path PATH", "Output:", "Exit status:"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(help({"--help"}), HasSubstr("doctor"));
  EXPECT_THAT(help({"--version"}), HasSubstr("ait "));
}

TEST(CommandLine, TakesTheNameItIsCalledBy) {
  const auto command = parse_command_line("msit", {"llm", "compare", "-h"}, all_commands());
  EXPECT_THAT(std::get<PrintText>(*command).text, HasSubstr("Usage: msit llm compare"));
}

TEST(CommandLine, AsksForACommandWhereNoneIsGiven) {
  for (const auto& arguments : {std::vector<std::string>{}, {"llm"}}) {
    const auto command = parse_command_line("ait", arguments, all_commands());
    ASSERT_TRUE(command);
    EXPECT_FALSE(std::get<PrintText>(*command).asked_for);
  }
}

TEST(CommandLine, PutsEveryComplaintOnOneLineWithAHint) {
  const std::vector<std::vector<std::string>> wrong = {
      {"llm", "compare"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "--nonsense"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "-l", "loud"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "--fail-on", "x"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "--metric-compat", "x"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "--threads", "-1"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "--my-dtype", "float17"},
      {"llm", "compare", "-gp", "a", "-mp", "b", "--my-shape", "2"},
  };
  for (const auto& arguments : wrong) {
    const Error error = refused(arguments);
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.text(), HasSubstr("see `ait llm compare --help`"));
    EXPECT_THAT(error.text(), Not(HasSubstr("\n")));
  }
  EXPECT_THAT(refused({"llm", "nonsense"}).text(), HasSubstr("see `ait llm --help`"));
  EXPECT_THAT(refused({"show"}).text(), HasSubstr("see `ait show --help`"));
}

TEST(CommandLine, NamesTheNearestCommand) {
  EXPECT_THAT(
      refused({"llm", "dmp"}).text(),
      HasSubstr("`dmp`: no such command; did you mean `dump`? `ait llm` has compare, dump"));
  EXPECT_THAT(refused({"shwo", "x.npy"}).text(), HasSubstr("did you mean `show`?"));
  EXPECT_THAT(refused({"compare", "-gp", "a"}).text(),
              HasSubstr("did you mean `ait llm compare`?"));
  const std::string far = refused({"llm", "frobnicate"}).text();
  EXPECT_THAT(far, HasSubstr("`frobnicate`: no such command; `ait llm` has compare"));
  EXPECT_THAT(far, Not(HasSubstr("did you mean")));
}

TEST(CommandLine, NamesTheNearestOption) {
  EXPECT_THAT(
      refused({"llm", "dump", "--exc", "x"}).text(),
      HasSubstr("`--exc`: no such option; did you mean `--exec`? See `ait llm dump --help`"));
  EXPECT_THAT(refused({"llm", "compare", "-gpp", "a", "-mp", "b"}).text(),
              HasSubstr("did you mean `-gp`?"));
  EXPECT_THAT(refused({"llm", "compare", "--golden=a", "-mp", "b"}).text(),
              HasSubstr("did you mean `--golden-path`?"));
  const std::string far = refused({"doctor", "--frobnicate"}).text();
  EXPECT_THAT(far, HasSubstr("`--frobnicate`: no such option; see"));
}

TEST(CommandLine, AsksForQuotesWhereTheCommandHasNone) {
  EXPECT_THAT(
      refused({"llm", "dump", "--exec", "python3", "run.py", "-o", "out"}).text(),
      HasSubstr("`run.py`: not expected here; if it belongs to the command of --exec, put"));
  EXPECT_THAT(refused({"llm", "dump", "--exec", "python3", "-m", "run"}).text(),
              HasSubstr("`-m`: no such option; if it belongs to the command of --exec, put"));
  EXPECT_THAT(refused({"llm", "dump", "--exec", "python3 run.py", "-m"}).text(),
              Not(HasSubstr("in quotes")));
  EXPECT_THAT(refused({"show", "a.npy", "b.npy"}).text(), HasSubstr("`b.npy`: not expected here;"));
}

TEST(CommandLine, SaysWhatAnOptionWithoutAValueWants) {
  EXPECT_THAT(refused({"llm", "dump", "--exec", "x", "--type"}).text(),
              HasSubstr("--type needs a value: what to record: model, layer, op, kernel, tensor,"));
  EXPECT_THAT(refused({"llm", "compare", "-mp", "b", "-gp"}).text(),
              HasSubstr("--golden-path needs a value"));
}

TEST(ParseShape, TakesTheUsualSpellings) {
  for (const char* text : {"2,3", "2x3", "[2, 3]", "[2,3]"})
    EXPECT_EQ(parse_shape(text).value(), Shape({2, 3}));
  EXPECT_EQ(parse_shape("[]").value(), Shape());
  EXPECT_EQ(parse_shape("7").value(), Shape({7}));
}

TEST(ParseShape, RefusesTheRest) {
  for (const char* text : {"", "2,", ",2", "-2", "2;3", "a", "[2", "2 3", "99999999999999999999",
                           "4294967296,4294967296"})
    EXPECT_FALSE(parse_shape(text)) << text;
}

}  // namespace
}  // namespace ait::cli
