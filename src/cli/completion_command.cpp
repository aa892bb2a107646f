#include "cli/command.h"
#include "cli/completion.h"
#include "cli/process_io.h"
#include "cli/registry.h"

namespace ait::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

class CompletionCommand : public CommandOf<CompletionOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("SHELL", options_.shell, "bash, zsh or fish");
  }

  Result<void> understand() override {
    for (const std::string& shell : kShells)
      if (shell == options_.shell) return {};
    return fail(Error(ErrorCode::kUsage)
                << "there is no completion for '" << options_.shell << "', give bash, zsh or fish");
  }

  int run() override {
    return print(completion_script(options_.shell, command_texts(all_commands())));
  }
};

}  // namespace

CommandEntry completion_command() {
  return {
      "completion",
      "Print what makes a shell complete ait's words",
      {"SHELL",
       {"completion bash >~/.local/share/bash-completion/completions/ait",
        "completion zsh >~/.zfunc/_ait", "completion fish >~/.config/fish/completions/ait.fish"}},
      &make_command<CompletionCommand>};
}

}  // namespace ait::cli
