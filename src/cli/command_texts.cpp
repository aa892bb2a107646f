#include "cli/command_texts.h"

#include "cli/arguments.h"
#include "cli/common_options.h"

namespace ait::cli {
namespace {

// Takes down what a command declares.
class TextOptions : public OptionSet {
 public:
  explicit TextOptions(CommandText& text) : text_(text) {}

  void group(const std::string& heading) override { group_ = heading; }
  void add_option(const std::string& names, std::string&, const std::string& meta,
                  const std::string& help) override {
    add(names, meta, help);
  }
  void add_optional(const std::string& names, std::string&, const std::string&,
                    const std::string& meta, const std::string& help) override {
    add(names, meta, help);
  }
  void add_required(const std::string& names, std::string&, const std::string& meta,
                    const std::string& help) override {
    add(names, meta, help);
  }
  void add_choice(const std::string& names, std::string&, const std::vector<std::string>& choices,
                  const std::string& meta, const std::string& help) override {
    add(names, meta, help).choices = choices;
  }
  void add_number(const std::string& names, size_t&, int, int, const std::string& meta,
                  const std::string& help) override {
    add(names, meta, help);
  }
  void add_list(const std::string& names, std::vector<std::string>&, const std::string& meta,
                const std::string& help) override {
    add(names, meta, help);
  }
  void add_flag(const std::string& names, bool&, const std::string& help) override {
    add(names, "", help);
  }
  void add_operand(const std::string& name, std::string&, const std::string& help) override {
    text_.operands.push_back({{}, "", name, {}, help});
  }
  void add_optional_operand(const std::string& name, std::string& value,
                            const std::string& help) override {
    add_operand(name, value, help);
  }

 private:
  OptionText& add(const std::string& names, const std::string& meta, const std::string& help) {
    OptionText option{{}, group_, meta, {}, help};
    for (size_t begin = 0; begin < names.size();) {
      const size_t end = std::min(names.find(',', begin), names.size());
      const std::string name = names.substr(begin, end - begin);
      if (const auto seed = seed_spelling(name); !seed.empty()) option.names.emplace_back(seed);
      option.names.push_back(name);
      begin = end + 1;
    }
    text_.options.push_back(std::move(option));
    return text_.options.back();
  }

  CommandText& text_;
  std::string group_;
};

void add_help(CommandText& text) {
  text.options.push_back({{"-h", "--help"}, "Other", "", {}, "print this help"});
}

}  // namespace

std::vector<CommandText> command_texts(const Registry& registry) {
  std::vector<CommandText> out;
  for (const CommandGroup& group : registry.groups) {
    CommandText text{group.path, group.purpose, {"COMMAND [options]", group.examples}, {}, {}, {}};
    const auto add_word = [&](const std::string& path) {
      if (!path.empty() && group_of(path) == group.path)
        text.commands.push_back(path.substr(path.rfind(' ') + 1));
    };
    for (const CommandGroup& other : registry.groups) add_word(other.path);
    for (const CommandEntry& entry : registry.commands) add_word(entry.path);
    if (text.purpose.ends_with(':'))
      for (const std::string& word : text.commands)
        text.purpose += (text.purpose.ends_with(':') ? " " : ", ") + word;
    add_help(text);
    if (group.path.empty())
      text.options.push_back({{"--version"}, "Other", "", {}, "print the version"});
    out.push_back(std::move(text));
  }
  for (const CommandEntry& entry : registry.commands) {
    CommandText text{entry.path, entry.purpose, entry.page, {}, {}, {}};
    const std::unique_ptr<Command> command = entry.make();
    TextOptions options(text);
    command->add_options(options);
    add_log_level(options, command->log_level);
    add_help(text);
    out.push_back(std::move(text));
  }
  return out;
}

std::string group_of(const std::string& path) {
  const size_t blank = path.rfind(' ');
  return blank == std::string::npos ? "" : path.substr(0, blank);
}

bool names_file(const std::string& meta) {
  return meta == "PATH" || meta == "FILE" || meta == "DIR" || meta == "REPORT" || meta == "SRC" ||
         meta == "DST";
}

}  // namespace ait::cli
