#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "cli/command.h"
#include "cli/process_io.h"
#include "dump/texts.h"
#include "launch/child.h"
#include "launch/environment.h"
#include "launch/program.h"
#include "record/dump_names.h"
#include "report/utf8.h"

namespace ait::cli {
namespace {

namespace fs = std::filesystem;
using dump::shell_word;

struct DemoOptions {
  std::string output = "ait_demo";
};

constexpr const char* kPrompt = "1,15,7,22,3,81";
constexpr const char* kFault = "scale@layer=2,op=RmsNorm,size=0.05";

// Runs commands as a person would type them, each shown before its output.
class Shell {
 public:
  // The programs are those beside this one, whatever else PATH has.
  explicit Shell(const std::string& programs)
      : environment_(launch::Environment::of_this_process()) {
    path_ = programs + ":" + environment_.get("PATH").value_or("/usr/bin:/bin");
    environment_.set("PATH", path_);
  }

  // Whether it ended with status 0; if not, `status` is what to end with.
  bool run(const std::string& title, const std::vector<std::string>& words, int& status) {
    std::string line;
    for (const std::string& word : words) line += " " + shell_word(word);
    status = print(fmt::format("\n{}. {}\n${}\n", ++step_, title, line));
    if (status != kDone) return false;
    const auto program = launch::find_program(words[0], path_);
    if (!program) return failed(program.error(), status);
    const auto end = launch::run_child(program->path, words, environment_);
    if (!end) return failed(end.error(), status);
    status = end->status();
    return status == 0;
  }

 private:
  static bool failed(const Error& error, int& status) {
    status = report_error(error);
    return false;
  }

  launch::Environment environment_;
  std::string path_;
  int step_ = 0;
};

int run_demo(const DemoOptions& options) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string& folder = options.output;
  const std::string model = folder + "/model";
  const std::string golden = folder + "/golden";
  const std::string my = folder + "/my";
  const std::string page = folder + "/report.html";
  if (fs::exists(folder, error))
    return report_error(Error(ErrorCode::kUsage, folder)
                        << "this exists already; remove it or give another folder with -o");
  const auto llama = [&](const std::string& rest) {
    return fmt::format("ait-llama --model {} --tokens {} --steps 3{}", shell_word(model), kPrompt,
                       rest);
  };
  Shell shell(self.parent_path().native());
  int status = kDone;
  const bool done =
      shell.run("A small llama with random weights, in Hugging Face's format",
                {"ait-llama", "--make-model", model}, status) &&
      shell.run("Record a trusted run: the engine in fp32",
                {"ait", "llm", "dump", "--exec", llama(""), "-er", "0,1", "-o", golden}, status) &&
      shell.run(fmt::format("Record the run to check: fp16, with a fault planted ({})", kFault),
                {"ait", "llm", "dump", "--exec",
                 llama(fmt::format(" --dtype fp16 --fault {}", kFault)), "-er", "0,1", "-o", my},
                status) &&
      shell.run("Compare the two dumps: where does the error begin?",
                {"ait", "llm", "compare", "-gp", golden + "/" + record::kDumpFolder, "-mp",
                 my + "/" + record::kDumpFolder, "-o", folder + "/report", "--html", page},
                status);
  if (!done) return status;
  return print(
      "\nThe fault was planted in the first RmsNorm of layer 2, which is operation 4: the word and "
      "position "
      "embeddings are 0 and 1.\nLook at it in a browser: " +
      report::visible(page) + "\n");
}

class DemoCommand : public CommandOf<DemoOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.group("Output");
    set.add_option("-o,--output", options_.output, "DIR",
                   "folder that is made for model, dumps and report; ait_demo if\nnot given");
  }

  int run() override { return run_demo(options_); }
};

}  // namespace

CommandEntry demo_command() {
  return {"demo",
          "Record two runs of a small llama, one with a fault, and find the fault",
          {"[options]", {"demo", "demo -o trial"}},
          &make_command<DemoCommand>};
}

}  // namespace ait::cli
