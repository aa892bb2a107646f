#include "base/output_file.h"
#include "cli/command.h"
#include "cli/man_page.h"
#include "cli/process_io.h"
#include "cli/registry.h"

namespace ait::cli {
namespace {

struct ManOptions {
  std::string page;
  std::string folder;
};

Result<void> write_page(const std::string& folder, const std::string& name,
                        const std::string& text) {
  auto file = OutputFile::create(folder, name);
  if (!file) return fail(file.error());
  if (auto written = file->write(text); !written) return written;
  if (auto path = file->finish_as(folder + "/" + name); !path) return fail(path.error());
  return {};
}

class ManCommand : public CommandOf<ManOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.add_optional_operand("PAGE", options_.page, "ait-llm-compare and so on; ait if not given");
    set.group("Output");
    set.add_option("-o,--output", options_.folder, "DIR", "write all pages there, to files");
  }

  int run() override {
    const std::vector<CommandText> all = command_texts(all_commands());
    const std::string wanted = options_.page.empty() ? "ait" : options_.page;
    std::string names;
    for (const CommandText& command : all) {
      if (!command.commands.empty() && !command.path.empty()) continue;  // no page for `ait llm`
      const std::string name = man_name(command);
      names += (names.empty() ? "" : ", ") + name;
      if (options_.folder.empty()) {
        if (name == wanted) return print(man_page(command, all));
      } else if (auto written = write_page(options_.folder, name + ".1", man_page(command, all));
                 !written) {
        return report_error(written.error());
      }
    }
    if (options_.folder.empty())
      return report_error(Error(ErrorCode::kUsage)
                          << "there is no page '" << printable(wanted) << "'; there are " << names);
    return kDone;
  }
};

}  // namespace

CommandEntry man_command() {
  return {
      "man",
      "Print the help of a command as a man page",
      {"[PAGE] [options]", {"man ait-llm-compare | man -l -", "man -o ~/.local/share/man/man1"}},
      &make_command<ManCommand>};
}

}  // namespace ait::cli
