#include "launch/command_words.h"

namespace ait::launch {
namespace {

Error wrong() { return Error(ErrorCode::kUsage); }

Error needs_a_shell(std::string_view what) {
  return wrong() << "the command is run without a shell, so " << what
                 << " has no meaning in it; write the command into a shell script and start that, "
                    "as in \"bash run.sh\", or put the character in quotes";
}

// Reads the words one character after another. `at_` is always the next one.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == ' ' || c == '\t') {
        end_word();
      } else if (c == '\'' || c == '"') {
        if (!(c == '"' ? double_quoted() : single_quoted()))
          return fail(wrong() << "a quote " << std::string_view(&c, 1)
                              << " is opened in the command and never closed");
      } else if (c == '\\') {
        if (at_ == text_.size())
          return fail(wrong() << "the command ends in a backslash that quotes nothing");
        if (text_[at_] != '\n') add(text_[at_]);  // a continued line is one line
        ++at_;
      } else if (const std::string_view what = shell_only(c); !what.empty()) {
        return fail(needs_a_shell(what));
      } else {
        add(c);
      }
    }
    end_word();
    if (words_.empty()) return fail(wrong() << "the command is empty; say what to run");
    return std::move(words_);
  }

 private:
  void add(char c) {
    word_ += c;
    in_word_ = true;
  }

  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  bool single_quoted() {
    in_word_ = true;  // '' is an empty word
    while (at_ < text_.size() && text_[at_] != '\'') word_ += text_[at_++];
    return at_++ < text_.size();
  }

  bool double_quoted() {
    in_word_ = true;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      // Before other characters a backslash in double quotes is just a backslash.
      const bool escapes = c == '\\' && at_ < text_.size() &&
                           std::string_view("$`\"\\\n").find(text_[at_]) != std::string_view::npos;
      if (escapes) {
        c = text_[at_++];
        if (c == '\n') continue;
      }
      word_ += c;
    }
    return at_++ < text_.size();
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  // How to call what only a shell understands; "" for everything else.
  std::string_view shell_only(char c) const {
    switch (c) {
      case '>':
        return "> (redirection)";
      case '<':
        return "< (redirection)";
      case '|':
        return next_is('|') ? "|| (a second command)" : "| (a pipe)";
      case '&':
        return next_is('&') ? "&& (a second command)" : "& (running in the background)";
      case ';':
        return "; (a second command)";
      case '`':
        return "` (a command's output)";
      case '\n':
        return "a line end (a second command)";
      case '$':
        return next_is('(') ? "$( (a command's output)" : "";
      default:
        return {};
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string word_;
  bool in_word_ = false;
  std::vector<std::string> words_;
};

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view text) {
  return Splitter(text).run();
}

}  // namespace ait::launch
