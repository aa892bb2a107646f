#include "launch/command_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace ait::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> words(std::string_view text) {
  auto out = split_command(text);
  EXPECT_TRUE(out) << text << ": " << out.error().text();
  return out.value_or(std::vector<std::string>{});
}

std::string refusal(std::string_view text) {
  const auto out = split_command(text);
  EXPECT_FALSE(out) << text;
  return out ? "" : out.error().text();
}

TEST(SplitCommand, SplitsTheSeedsExample) {
  EXPECT_THAT(words("bash run.sh patches/models/modeling_xxx.py"),
              ElementsAre("bash", "run.sh", "patches/models/modeling_xxx.py"));
  EXPECT_THAT(words(" \t a  b\t"), ElementsAre("a", "b"));
}

TEST(SplitCommand, KeepsQuotedWordsTogether) {
  EXPECT_THAT(words("bash -c 'a  b' \"c d\" e\\ f"),
              ElementsAre("bash", "-c", "a  b", "c d", "e f"));
  EXPECT_THAT(words("a'b'\"c\"d"), ElementsAre("abcd"));
  EXPECT_THAT(words("a '' \"\""), ElementsAre("a", "", ""));
}

TEST(SplitCommand, TakesBackslashesInDoubleQuotesAsAShellDoes) {
  EXPECT_THAT(words(R"(a "x\"y\\z\n\$q")"), ElementsAre("a", R"(x"y\z\n$q)"));
  EXPECT_THAT(words(R"(a 'x\"y')"), ElementsAre("a", R"(x\"y)"));
  EXPECT_THAT(words("a\\\nb \"c\\\nd\""), ElementsAre("ab", "cd"));
}

TEST(SplitCommand, ExpandsNothing) {
  EXPECT_THAT(words("a $HOME *.py ~/x {1,2} # no"),
              ElementsAre("a", "$HOME", "*.py", "~/x", "{1,2}", "#", "no"));
}

TEST(SplitCommand, RefusesWhatNeedsAShellAndSaysWhatToDo) {
  for (const char* text : {"a > b", "a>b", "a < b", "a | b", "a & b", "a; b", "a $(b)", "a `b`",
                           "a\nb", "a && b", "a 2>&1"})
    EXPECT_THAT(refusal(text), HasSubstr("write the command into a shell script")) << text;
}

TEST(SplitCommand, CallsWhatOnlyAShellUnderstandsByItsName) {
  EXPECT_THAT(refusal("a & b"), HasSubstr("& (running in the background)"));
  EXPECT_THAT(refusal("a && b"), HasSubstr("&& (a second command)"));
  EXPECT_THAT(refusal("a | b"), HasSubstr("| (a pipe)"));
  EXPECT_THAT(refusal("a || b"), HasSubstr("|| (a second command)"));
}

TEST(SplitCommand, TakesTheSameCharactersInQuotes) {
  EXPECT_THAT(words("bash -c 'a > b; c | d & `e` $(f)'"),
              ElementsAre("bash", "-c", "a > b; c | d & `e` $(f)"));
  EXPECT_THAT(words("a \\> \\; \";\""), ElementsAre("a", ">", ";", ";"));
}

TEST(SplitCommand, RefusesBlankTextAndOpenQuotes) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal(" \t "), HasSubstr("empty"));
  EXPECT_THAT(refusal("a 'b"), HasSubstr("never closed"));
  EXPECT_THAT(refusal("a \"b"), HasSubstr("never closed"));
  EXPECT_THAT(refusal("a \"b\\\""), HasSubstr("never closed"));
  EXPECT_THAT(refusal("a \\"), HasSubstr("backslash"));
}

// What the shell itself makes of a command, one word a line.
std::string shell_words(const std::string& command) {
  std::string script = "set -f; printf '[%s]' " + command;
  std::string quoted = "'";
  for (const char c : script) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  FILE* pipe = ::popen(("sh -c " + quoted + "'").c_str(), "r");
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return out;
}

TEST(SplitCommand, AgreesWithTheShellOnWordsAndQuotes) {
  const std::string parts[] = {"a",        " ",  "'b c'",    "\"d e\"", "\\ ",
                               "\"\\\\\"", "''", "\"f\\g\"", "'\\'",    "x=y"};
  unsigned seed = 1;
  for (int round = 0; round < 60; ++round) {
    std::string command = "w";
    for (int i = 0; i < 6; ++i) {
      seed = seed * 1103515245U + 12345U;
      command += parts[(seed >> 16) % std::size(parts)];
    }
    std::string ours;
    for (const std::string& word : words(command)) ours += "[" + word + "]";
    EXPECT_EQ(ours, shell_words(command)) << command;
  }
}

}  // namespace
}  // namespace ait::launch
