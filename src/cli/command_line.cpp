#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/log.h"
#include "cli/arguments.h"
#include "cli/common_options.h"
#include "cli/nearest.h"

namespace ait::cli {
namespace {

constexpr size_t kHelpColumn = 30;

// Purpose, usage, examples, options by group, commands, exit status.
class Help : public CLI::Formatter {
 public:
  explicit Help(std::string program) : program_(std::move(program)) { column_width(kHelpColumn); }

  void add_page(const CLI::App* app, HelpPage page) { pages_[app] = std::move(page); }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const HelpPage& page = pages_.at(app);
    std::string out = app->get_description() + "\n\nUsage: " + name + " " + page.usage + "\n";
    if (!page.examples.empty()) out += "\nExamples:\n";
    for (const std::string& example : page.examples) out += "  " + program_ + " " + example + "\n";
    out += make_subcommands(app, mode);
    // CLI11 leaves two blank lines between groups.
    out += CLI::detail::find_and_replace(make_groups(app, mode), "\n\n\n", "\n\n");
    return out + "\nExit status:\n" + page.exit_status;
  }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    const std::string_view seed = seed_spelling(name);
    return seed.empty() ? name : std::string(seed) + "," + name;
  }

 private:
  std::string program_;
  std::map<const CLI::App*, HelpPage> pages_;
};

class AppOptions : public OptionSet {
 public:
  explicit AppOptions(CLI::App& app) : app_(app) {}

  void group(const std::string& heading) override { group_ = heading; }

  void add_option(const std::string& names, std::string& value, const std::string& meta,
                  const std::string& help) override {
    add(names, value, meta, help);
  }
  void add_optional(const std::string& names, std::string& value, const std::string& bare,
                    const std::string& meta, const std::string& help) override {
    add(names, value, meta, help)->expected(0, 1)->default_str(bare);
  }
  void add_required(const std::string& names, std::string& value, const std::string& meta,
                    const std::string& help) override {
    add(names, value, meta, help)->required();
  }
  void add_choice(const std::string& names, std::string& value,
                  const std::vector<std::string>& choices, const std::string& meta,
                  const std::string& help) override {
    add(names, value, meta, help)->check(CLI::IsMember(choices));
  }
  void add_number(const std::string& names, size_t& value, int first, int last,
                  const std::string& meta, const std::string& help) override {
    add(names, value, meta, help)->check(CLI::Range(first, last));
  }
  void add_list(const std::string& names, std::vector<std::string>& words, const std::string& meta,
                const std::string& help) override {
    add(names, words, meta, help)->expected(1, -1);
  }
  void add_flag(const std::string& names, bool& value, const std::string& help) override {
    app_.add_flag(names, value, help)->group(group_);
  }
  void add_operand(const std::string& name, std::string& value, const std::string& help) override {
    app_.add_option(name, value, help)->required();
  }
  void add_optional_operand(const std::string& name, std::string& value,
                            const std::string& help) override {
    app_.add_option(name, value, help);
  }

 private:
  template <typename T>
  CLI::Option* add(const std::string& names, T& value, const std::string& meta,
                   const std::string& help) {
    return app_.add_option(names, value, help)->option_text(meta)->group(group_);
  }

  CLI::App& app_;
  std::string group_;
};

// The registry as CLI11 sees it: an application for every group and command.
class Tree {
 public:
  Tree(const std::string& program, const Registry& registry)
      : help_(std::make_shared<Help>(program)), root_("", program) {
    root_.formatter(help_);
    root_.set_help_flag("-h,--help", "print this help");
    root_.set_version_flag("--version", "ait " AIT_VERSION, "print the version");
    for (const CommandGroup& group : registry.groups) {
      CLI::App& app = group.path.empty() ? root_ : add_below(group.path);
      app.description(group.purpose);
      apps_[group.path] = &app;
      help_->add_page(&app, {"COMMAND [options]", group.examples});
    }
    for (const CommandEntry& entry : registry.commands) add_command(entry);
    for (const CommandGroup& group : registry.groups)
      if (group.purpose.ends_with(':')) name_commands(*apps_[group.path]);
  }

  CLI::App& root() { return root_; }

  // CLI11 takes the name of any command for a command wherever it stands. Behind the words of one
  // there are none: `ait show dump` is about a file of that name.
  void leave_only(const std::vector<std::string>& arguments) {
    std::vector<CLI::App*> others;
    CLI::App* app = &root_;
    for (const std::string& word : arguments) {
      CLI::App* next = nullptr;
      std::vector<CLI::App*> beside;
      for (CLI::App* each : app->get_subcommands(nullptr))
        if (each->get_name() == word)
          next = each;
        else
          beside.push_back(each);
      if (next == nullptr) break;
      others.insert(others.end(), beside.begin(), beside.end());
      app = next;
    }
    if (!app->get_subcommands(nullptr).empty()) return;
    for (CLI::App* other : others) other->disabled();
  }

  // The command that was given, or nothing.
  std::unique_ptr<Command> take_given() {
    const auto given = std::find_if(commands_.begin(), commands_.end(),
                                    [](const auto& command) { return command.first->parsed(); });
    return given == commands_.end() ? nullptr : std::move(given->second);
  }

  // "llm compare": the subcommands that were given, for the hint after an error.
  std::string given_words() const {
    std::string out;
    for (const CLI::App* app = &root_; app != &given();) {
      app = app->get_subcommands().front();
      out += " " + app->get_name();
    }
    return out;
  }

  // What is wrong with a command line that was refused: words that nobody knows come first, because
  // what else is missing may follow from them.
  std::string complaint(const CLI::ParseError& error) const {
    const std::vector<std::string> unknown = given().remaining();
    if (!unknown.empty()) return about_unknown(unknown.front());
    if (const std::string text = about_missing_value(error); !text.empty()) return text;
    std::string what = error.what();
    while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
    return what;
  }

 private:
  // The innermost subcommand that was given.
  const CLI::App& given() const {
    const CLI::App* app = &root_;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return *app;
  }

  std::string about_unknown(const std::string& word) const {
    const std::string shown = "`" + printable(word) + "`: ";
    if (word.starts_with('-')) {
      const std::string near = nearest(word.substr(0, word.find('=')), option_names(given()));
      return shown + "no such option" +
             (near.empty() ? about_quotes() : "; did you mean `" + near + "`?");
    }
    const std::vector<std::string> below = command_names(given());
    if (below.empty()) return shown + "not expected here" + about_quotes();
    const std::string name = given_words();
    std::string near = nearest(word, below);
    // A command of another group: `ait compare` is `ait llm compare`.
    for (const auto& [app, path] : paths_)
      if (near.empty() && app->get_name() == word) near = root_.get_name() + " " + path;
    std::string text = shown + "no such command";
    if (!near.empty()) text += "; did you mean `" + near + "`?";
    text += near.empty() ? "; " : " ";
    text += "`" + root_.get_name() + name + "` has ";
    for (const std::string& each : below) text += (&each == &below.front() ? "" : ", ") + each;
    return text;
  }

  // `--exec python3 -m run` without quotes leaves words over.
  std::string about_quotes() const {
    const CLI::Option* exec = given().get_option_no_throw("--exec");
    return exec == nullptr || exec->count() == 0 ||
                   exec->results().front().find(' ') != std::string::npos
               ? ""
               : "; if it belongs to the command of --exec, put that whole command in quotes: "
                 "--exec \"python3 run.py\"";
  }

  // "--type needs a value: what to record: model, layer, …", where that is the complaint.
  std::string about_missing_value(const CLI::ParseError& error) const {
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return "";
    const std::string what = error.what();
    const CLI::Option* option = given().get_option_no_throw(what.substr(0, what.find(':')));
    if (option == nullptr || option->count() > 1) return "";
    std::string help = option->get_description();
    std::replace(help.begin(), help.end(), '\n', ' ');
    return option->get_name() + " needs a value: " + help;
  }

  static std::vector<std::string> command_names(const CLI::App& group) {
    std::vector<std::string> names;
    for (const CLI::App* app : group.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(app->get_name());
    return names;
  }

  static std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
        if (const auto seed = seed_spelling(names.back()); !seed.empty()) names.emplace_back(seed);
      }
      for (const std::string& name : option->get_snames()) names.push_back("-" + name);
    }
    return names;
  }

  // "llm compare" is `compare` below "llm"; a group that is missing is a fault of the registry.
  CLI::App& add_below(const std::string& path) {
    const size_t blank = path.rfind(' ');
    const std::string above = blank == std::string::npos ? "" : path.substr(0, blank);
    return *apps_.at(above)->add_subcommand(path.substr(blank + 1));  // npos + 1 is 0
  }

  void add_command(const CommandEntry& entry) {
    CLI::App& app = add_below(entry.path);
    paths_.emplace_back(&app, entry.path);
    app.description(entry.purpose);
    help_->add_page(&app, entry.page);
    std::unique_ptr<Command> command = entry.make();
    AppOptions options(app);
    command->add_options(options);
    add_log_level(options, command->log_level);
    app.set_help_flag("-h,--help", "print this help")->group("Other");
    commands_.emplace_back(&app, std::move(command));
  }

  static void name_commands(CLI::App& group) {
    std::string text = group.get_description();
    for (const std::string& name : command_names(group))
      text += (text.ends_with(':') ? " " : ", ") + name;
    group.description(text);
  }

  std::shared_ptr<Help> help_;
  CLI::App root_;
  std::map<std::string, CLI::App*> apps_;                       // of groups, by path
  std::vector<std::pair<const CLI::App*, std::string>> paths_;  // of commands
  std::vector<std::pair<const CLI::App*, std::unique_ptr<Command>>> commands_;
};

}  // namespace

Result<Asked> parse_command_line(const std::string& program, std::vector<std::string> arguments,
                                 const Registry& registry) {
  Tree tree(program, registry);
  const auto usage = [&](std::string_view what) {
    return fail(Error(ErrorCode::kUsage) << what << (what.ends_with('?') ? " See `" : "; see `")
                                         << program << tree.given_words() << " --help`");
  };
  try {
    arguments = rewrite_arguments(arguments);
    tree.leave_only(arguments);
    std::reverse(arguments.begin(), arguments.end());
    tree.root().parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return PrintText{tree.root().help()};
  } catch (const CLI::CallForVersion&) {
    return PrintText{"ait " AIT_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    return usage(tree.complaint(error));
  }
  std::unique_ptr<Command> command = tree.take_given();
  if (command == nullptr) return PrintText{tree.root().help(), false};
  const auto level = parse_log_level(command->log_level);
  if (!level)
    return usage("-l does not know '" + printable(command->log_level) +
                 "', give debug, info, warning, error, fatal or critical");
  set_log_level(*level);
  if (auto understood = command->understand(); !understood)
    return usage(understood.error().message());
  return command;
}

}  // namespace ait::cli
