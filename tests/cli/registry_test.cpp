#include "cli/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "cli/common_options.h"

namespace ait::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct ToyOptions {
  std::string operand;
  std::string text = "kept";
  std::string choice;
  size_t number = 0;
  std::vector<std::string> list;
  bool flag = false;
};

// A command as a new one is written, which the product does not know.
class ToyCommand : public CommandOf<ToyOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("OPERAND", options_.operand, "what to play with");
    set.group("Toys");
    set.add_option("-t,--text", options_.text, "TEXT", "any text");
    set.add_choice("--choice", options_.choice, {"red", "blue"}, "COLOUR", "red or blue");
    set.add_number("--number", options_.number, 1, 9, "N", "1 to 9");
    set.add_list("--list", options_.list, "WORD...", "several\nwords");
    set.add_flag("--flag", options_.flag, "yes");
    add_exec(set, exec_);
  }

  Result<void> understand() override {
    if (options_.flag && options_.number == 0)
      return fail(Error(ErrorCode::kUsage) << "--flag needs --number");
    return {};
  }

  int run() override { return 40 + static_cast<int>(options_.number); }

 private:
  std::string exec_;
};

CommandEntry toy_command(const std::string& path) {
  return {path,
          "Play with what there is",
          {"OPERAND [options]", {path + " ball"}, "  40  it was fun\n"},
          &make_command<ToyCommand>};
}

Registry with_toy(const std::string& path) {
  Registry registry = all_commands();
  registry.commands.push_back(toy_command(path));
  return registry;
}

std::string text_of(const Registry& registry, std::vector<std::string> arguments) {
  const auto asked = parse_command_line("ait", std::move(arguments), registry);
  EXPECT_TRUE(asked) << asked.error().text();
  return std::get<PrintText>(*asked).text;
}

std::string complaint(const Registry& registry, std::vector<std::string> arguments) {
  const auto asked = parse_command_line("ait", std::move(arguments), registry);
  EXPECT_FALSE(asked);
  return asked ? "" : asked.error().text();
}

TEST(Registry, ACommandIsParsedAndRun) {
  const Registry registry = with_toy("toy");
  const auto asked =
      parse_command_line("ait",
                         {"toy", "ball", "--choice", "blue", "--number", "2", "--list", "a", "b",
                          "--flag", "--exec", "true", "-l", "error"},
                         registry);
  ASSERT_TRUE(asked) << asked.error().text();
  const auto& command = std::get<std::unique_ptr<Command>>(*asked);
  const ToyOptions& options = dynamic_cast<const CommandOf<ToyOptions>&>(*command).options();
  EXPECT_EQ(options.operand, "ball");
  EXPECT_EQ(options.text, "kept");
  EXPECT_EQ(options.choice, "blue");
  EXPECT_THAT(options.list, ElementsAre("a", "b"));
  EXPECT_TRUE(options.flag);
  EXPECT_EQ(command->log_level, "error");
  EXPECT_EQ(command->run(), 42);
}

TEST(Registry, ACommandIsInTheHelp) {
  const Registry registry = with_toy("toy");
  EXPECT_THAT(text_of(registry, {"--help"}),
              AllOf(HasSubstr("Play with what there is"), HasSubstr("doctor")));
  EXPECT_THAT(text_of(registry, {"toy", "--help"}),
              AllOf(HasSubstr("Usage: ait toy OPERAND [options]"), HasSubstr("  ait toy ball\n"),
                    HasSubstr("Toys:\n"), HasSubstr("-t,--text TEXT"), HasSubstr("--log-level"),
                    HasSubstr("Exit status:\n  40  it was fun\n")));
  EXPECT_THAT(text_of(all_commands(), {"--help"}), Not(HasSubstr("toy")));
}

TEST(Registry, AGroupNamesACommandThatIsAddedToIt) {
  const Registry registry = with_toy("llm toy");
  EXPECT_THAT(text_of(registry, {"--help"}),
              HasSubstr("compare, dump, watch, errcheck, opcheck, convert, toy\n"));
  EXPECT_THAT(text_of(registry, {"llm", "toy", "-h"}), HasSubstr("Usage: ait llm toy OPERAND"));
}

TEST(Registry, EveryComplaintOfACommandSaysWhereItsHelpIs) {
  const Registry registry = with_toy("llm toy");
  const std::vector<std::string> right = {"llm", "toy", "ball", "--exec", "true"};
  const std::vector<std::pair<std::vector<std::string>, const char*>> wrong = {
      {{"--choice", "green"}, "green not in"},     {{"--number", "10"}, "10 not in range"},
      {{"--flag"}, "--flag needs --number"},       {{"--list"}, "--list"},
      {{"-l", "loud"}, "-l does not know 'loud'"},
  };
  for (const auto& [more, what] : wrong) {
    std::vector<std::string> arguments = right;
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_THAT(complaint(registry, arguments),
                AllOf(HasSubstr(what), HasSubstr("see `ait llm toy --help`")));
  }
  EXPECT_THAT(complaint(registry, {"llm", "toy", "ball"}), HasSubstr("--exec is required"));
  EXPECT_THAT(complaint(registry, {"llm", "toy", "--exec", "x"}), HasSubstr("OPERAND is required"));
}

}  // namespace
}  // namespace ait::cli
