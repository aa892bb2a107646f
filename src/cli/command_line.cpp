#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "base/log.h"
#include "cli/arguments.h"
#include "launch/command_words.h"

namespace ait::cli {
namespace {

constexpr size_t kHelpColumn = 30;
constexpr int kMaxThreads = 1024;
constexpr const char* kExitStatus =
    "  0  done, whatever was found\n"
    "  2  wrong usage, unreadable input or nothing to do; one line says why\n";
constexpr const char* kCompareExitStatus =
    "  0  done, whatever was found\n"
    "  1  a condition of --fail-on was met\n"
    "  2  wrong usage, unreadable input, nothing to compare, or a report that cannot be written\n"
    "  130  stopped by Ctrl-C; of many pairs, those done are in a report named …_partial.csv\n";

constexpr const char* kExecExitStatus =
    "  that of the command, 128 + signal when it was killed\n"
    "  2  also where ait could not start it; one line says why\n";

// Purpose, usage, examples, options by group, commands, exit status.
class Help : public CLI::Formatter {
 public:
  struct Page {
    std::string usage;     // what follows the command's name
    std::string examples;  // lines, indented
    std::string exit_status;
  };

  Help() { column_width(kHelpColumn); }
  Page& page(const CLI::App* app) { return pages_[app]; }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const auto found = pages_.find(app);
    const Page page = found == pages_.end() ? Page{} : found->second;
    std::string out = app->get_description() + "\n\nUsage: " + name + " " + page.usage + "\n";
    if (!page.examples.empty()) out += "\nExamples:\n" + page.examples;
    out += make_subcommands(app, mode);
    // CLI11 leaves two blank lines between groups.
    out += CLI::detail::find_and_replace(make_groups(app, mode), "\n\n\n", "\n\n");
    if (!page.exit_status.empty()) out += "\nExit status:\n" + page.exit_status;
    return out;
  }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    const std::string_view seed = seed_spelling(name);
    return seed.empty() ? name : std::string(seed) + "," + name;
  }

 private:
  std::map<const CLI::App*, Page> pages_;
};

// Options as words, before they are understood.
struct RawWords {
  std::string dtype;
  std::string shape;
};

struct Words {
  std::string log_level = "info";
  std::string fail_on;
  std::string compat;
  RawWords golden, actual, show;
  CompareOptions compare;
  AclcmpOptions aclcmp;
  std::string aclcmp_exec;
  DumpWords dump;
  ErrcheckWords errcheck;
  ShowOptions show_options;
  DemoOptions demo;
  DoctorOptions doctor;
};

// What every command has, after its own.
void add_common(CLI::App& app, std::string& level) {
  app.add_option("-l,--log-level", level,
                 "debug, info, warning, error, fatal, critical; info if\nnot given")
      ->option_text("LEVEL")
      ->group("Other");
  app.set_help_flag("-h,--help", "print this help")->group("Other");
}

void add_threads(CLI::App& app, size_t& threads) {
  app.add_option("--threads", threads, "threads to compute with; all cores if not given")
      ->option_text("N")
      ->check(CLI::Range(1, kMaxThreads))
      ->group("Other");
}

CLI::App* add_compare(CLI::App& llm, Help& help, const std::string& program, Words& words) {
  CompareOptions& o = words.compare;
  CLI::App* app = llm.add_subcommand("compare", "Compare tensors of a trusted run with yours");
  help.page(app) = {
      "-gp PATH -mp PATH [options]",
      "  " + program + " llm compare -gp golden.npy -mp actual.npy\n  " + program +
          " llm compare -gp layer.pth -mp layer.bin -o out\n  " + program +
          " llm compare -gp golden_folder -mp my_folder -o out\n  " + program +
          " llm compare -gp torch_run/ait_dump -mp my_run/ait_dump -o out\n  " + program +
          " llm compare -gp golden.npy -mp actual.npy --fail-on 'cosine_similarity<0.999,nan'\n",
      kCompareExitStatus};

  app->add_option("--golden-path", o.golden.path,
                  "the trusted side: a tensor file of any format, a folder of such\n"
                  "files, a checkpoint, a dump of torch or of the acceleration\n"
                  "library, or a folder that holds golden_tensor")
      ->option_text("PATH")
      ->required()
      ->group("Input");
  app->add_option("--my-path", o.actual.path,
                  "the side to check, of the same kind; with golden_tensor only\n"
                  "where the files have moved")
      ->option_text("PATH")
      ->group("Input");
  app->add_option("--golden-name", o.golden.name, "which tensor, where a file holds several")
      ->option_text("NAME")
      ->group("Input");
  app->add_option("--my-name", o.actual.name, "likewise")->option_text("NAME")->group("Input");
  app->add_option("--op-mapping-file", o.mapping_file,
                  "operator types that correspond, for dumps: a json file, or the\n"
                  "folder that holds op_mapping_file.json")
      ->option_text("PATH")
      ->group("Input");
  app->add_option("--token-map", o.token_map,
                  "which of my folders belongs to which golden token, for dumps,\n"
                  "as 0:1,1:1,2:2; found out if not given")
      ->option_text("MAP")
      ->group("Input");

  app->add_option("--golden-dtype", words.golden.dtype,
                  "the golden file is bare bytes of this type")
      ->option_text("TYPE")
      ->group("Bare bytes");
  app->add_option("--golden-shape", words.golden.shape, "and of this shape, as 2,3")
      ->option_text("SHAPE")
      ->group("Bare bytes");
  app->add_option("--my-dtype", words.actual.dtype, "the same for the other file")
      ->option_text("TYPE")
      ->group("Bare bytes");
  app->add_option("--my-shape", words.actual.shape, "likewise")
      ->option_text("SHAPE")
      ->group("Bare bytes");

  app->add_option("-o,--output", o.output_folder,
                  "folder for the csv report; a single pair gets one only\n"
                  "with this, many pairs one in the current folder without it")
      ->option_text("DIR")
      ->group("Output");
  app->add_flag("--json", o.json, "print one JSON document instead of tables")->group("Output");
  app->add_flag("--extended", o.extended, "more columns, after cmp_fail_reason")->group("Output");
  app->add_option("--fail-on", words.fail_on,
                  "end with status 1 where one holds: metric<number,\n"
                  "metric>number, failed, nan, unmatched")
      ->option_text("LIST")
      ->group("Output");
  app->add_option("--metric-compat", words.compat, "the old tools' definitions: msit or ait")
      ->option_text("TOOL")
      ->check(CLI::IsMember({"msit", "ait"}))
      ->group("Output");
  add_threads(*app, o.threads);
  add_common(*app, words.log_level);
  return app;
}

void add_exec(CLI::App& app, std::string& exec) {
  app.add_option("--exec", exec,
                 "the command to run, in quotes. It is split into words as a shell\n"
                 "would, but no shell sees it: for redirection or pipes write a\n"
                 "script and start that")
      ->option_text("\"CMD\"")
      ->required()
      ->group("Command");
}

CLI::App* add_aclcmp(CLI::App& compare, Help& help, const std::string& program, Words& words) {
  AclcmpOptions& o = words.aclcmp;
  CLI::App* app = compare.add_subcommand(
      "aclcmp", "Compare what a script labels while it runs: torch with the acceleration library");
  help.page(app) = {"--exec \"CMD\" [options]",
                    "  " + program + " debug compare aclcmp --exec \"bash run.sh args\"\n  " +
                        program + " debug compare aclcmp --exec \"python3 chat.py\"\n  " + program +
                        " debug compare aclcmp --labels folder\n",
                    kExecExitStatus};
  app->add_option("--exec", words.aclcmp_exec,
                  "the command to run, in quotes; its script calls set_label. For\n"
                  "redirection or pipes write a script and start that")
      ->option_text("\"CMD\"")
      ->group("Command");
  app->add_option("--labels", o.labels,
                  "in place of a command: compare the labels that are in this\nfolder already")
      ->option_text("DIR")
      ->group("Command");
  app->add_flag("--json", o.json, "print one JSON document instead of tables")->group("Output");
  app->add_flag("--extended", o.extended, "more columns, after cmp_fail_reason")->group("Output");
  add_threads(*app, o.threads);
  add_common(*app, words.log_level);
  return app;
}

// A list that may come as several words: `-ids 2, 3_1`.
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& words,
                      const std::string& text, const std::string& meta) {
  return app.add_option(name, words, text)->option_text(meta)->expected(1, -1);
}

CLI::App* add_dump(CLI::App& llm, Help& help, const std::string& program, Words& words) {
  DumpWords& w = words.dump;
  dump::Options& o = w.rest.record;
  CLI::App* app = llm.add_subcommand(
      "dump", "Record what the acceleration library or torch computes in a command");
  help.page(app) = {"--exec \"CMD\" [options]",
                    "  " + program + " llm dump --exec \"bash run.sh\" --dry-run\n  " + program +
                        " llm dump --exec \"bash run.sh\" -er 0,1 -o out\n  " + program +
                        " llm dump --exec \"bash run.sh\" --type model onnx\n  " + program +
                        " llm dump --exec \"bash run.sh\" -ids 2, 3_1 -child False\n  " + program +
                        " llm dump --exec \"python3 generate.py\" --probe torch -o golden\n",
                    kExecExitStatus};
  add_exec(*app, w.exec);
  app->add_option("--probe", w.probe,
                  "atb: the acceleration library; torch: the modules of a Python\n"
                  "script, which need not be changed; atb if not given")
      ->option_text("PROBE")
      ->group("What");
  add_list(*app, "--type", w.types,
           "what to record: model, layer, op, kernel, tensor,\n"
           "cpu_profiling, onnx; tensor if not given",
           "TYPE...")
      ->group("What");
  app->add_flag("--only-save-desc", o.only_description, "only types and shapes of tensors, no data")
      ->group("What");
  app->add_flag("--save-tiling", o.tiling, "tiling data of kernels too")->group("What");
  add_list(*app, "--save-operation-ids", w.ids,
           "only these operations and what is inside them, as 2,3_1;\n"
           "all if not given; --type model shows the ids",
           "IDS")
      ->group("Which");
  app->add_option("--save-operation-child", w.children,
                  "with -ids: what is inside them too; True if not given")
      ->option_text("BOOL")
      ->group("Which");
  add_list(*app, "--operation-name", w.operation_names,
           "only operations whose name begins so, in any case;\nor-ed with -ids", "NAME")
      ->group("Which");
  add_list(*app, "--execute-range", w.rounds,
           "rounds, first and last of each range, as 3,5,7,7;\n0,0 if not given", "RANGE")
      ->group("Which");
  app->add_option("--save-time", w.time, "0 before, 1 after, 2 both; 1 if not given")
      ->option_text("N")
      ->group("Which");
  app->add_option("--save-tensor-part", w.part, "0 inputs, 1 outputs, 2 both; 2 if not given")
      ->option_text("N")
      ->group("Which");
  app->add_option("--device-id", w.device, "only this device; all if not given")
      ->option_text("N")
      ->group("Which");
  app->add_option("-o,--output", o.output,
                  "folder in which ait_dump is made; the current one if not\ngiven")
      ->option_text("DIR")
      ->group("Output");
  app->add_flag("--dry-run", o.dry_run,
                "run the command, write nothing, and say how many tensors and\n"
                "bytes a real run would write and how long that takes")
      ->group("Output");
  app->add_flag("--json", w.rest.json, "print the manifest instead of the summary")->group("Output");
  add_common(*app, words.log_level);
  return app;
}

CLI::App* add_errcheck(CLI::App& llm, Help& help, const std::string& program, Words& words) {
  ErrcheckWords& w = words.errcheck;
  CLI::App* app =
      llm.add_subcommand("errcheck", "Find operators that overflow while a command runs");
  help.page(app) = {"--exec \"CMD\" [options]",
                    "  " + program + " llm errcheck --exec \"bash run.sh\" -o out\n  " + program +
                        " llm errcheck --exec \"bash run.sh\" --type overflow --exit\n",
                    kExecExitStatus};
  add_exec(*app, w.exec);
  add_list(*app, "--type", w.types, "what to look for: overflow", "TYPE")->group("What");
  app->add_flag("--exit", w.rest.check.stop,
                "make the operation that overflows fail, which ends most programs")
      ->group("What");
  app->add_option("-o,--output", w.rest.check.output,
                  "folder for the results, one file for each process that had\n"
                  "an overflow; the current one if not given")
      ->option_text("DIR")
      ->group("Output");
  app->add_flag("--json", w.rest.json, "print one JSON document instead of tables")
      ->group("Output");
  add_common(*app, words.log_level);
  return app;
}

CLI::App* add_show(CLI::App& root, Help& help, const std::string& program, Words& words) {
  ShowOptions& o = words.show_options;
  CLI::App* app = root.add_subcommand("show", "Show what a tensor file holds");
  help.page(app) = {"FILE [options]",
                    "  " + program + " show layer.pth\n  " + program +
                        " show model.safetensors --name lm_head.weight --values 32\n  " + program +
                        " show bytes.raw --dtype float16 --shape 2,3\n",
                    kExitStatus};
  app->add_option("FILE", o.source.path, "a tensor file of any format")->required();
  app->add_option("--name", o.source.name, "which tensor, where the file holds several")
      ->option_text("NAME")
      ->group("Input");
  app->add_option("--dtype", words.show.dtype, "the file is bare bytes of this type")
      ->option_text("TYPE")
      ->group("Input");
  app->add_option("--shape", words.show.shape, "and of this shape, as 2,3")
      ->option_text("SHAPE")
      ->group("Input");
  app->add_option("--values", o.values, "how many values to print; 8 if not given")
      ->option_text("N")
      ->check(CLI::Range(0, 1'000'000))
      ->group("Output");
  app->add_flag("--json", o.json, "print one JSON document instead of tables")->group("Output");
  add_threads(*app, o.threads);
  add_common(*app, words.log_level);
  return app;
}

CLI::App* add_demo(CLI::App& root, Help& help, const std::string& program, Words& words) {
  CLI::App* app = root.add_subcommand(
      "demo", "Record two runs of a small llama, one with a fault, and find the fault");
  help.page(app) = {"[options]", "  " + program + " demo\n  " + program + " demo -o trial\n",
                    kExitStatus};
  app->add_option("-o,--output", words.demo.output,
                  "folder to be made for model, dumps and report; ait_demo if\nnot given")
      ->option_text("DIR")
      ->group("Output");
  add_common(*app, words.log_level);
  return app;
}

CLI::App* add_doctor(CLI::App& root, Help& help, const std::string& program, Words& words) {
  CLI::App* app = root.add_subcommand("doctor", "Say what will and won't work on this machine");
  help.page(app) = {"[options]", "  " + program + " doctor\n  " + program + " doctor --json\n",
                    kExitStatus};
  app->add_flag("--json", words.doctor.json, "print one JSON document instead of tables")
      ->group("Output");
  add_common(*app, words.log_level);
  return app;
}

// "llm compare": the subcommands that were given, for the hint after an error.
std::string given_commands(const CLI::App& root) {
  std::string out;
  for (const CLI::App* app = &root; !app->get_subcommands().empty();) {
    app = app->get_subcommands().front();
    out += " " + app->get_name();
  }
  return out;
}

Result<Command> understand_compare(Words& words) {
  CompareOptions o = std::move(words.compare);
  auto golden_raw = parse_raw_layout(words.golden.dtype, words.golden.shape, "--golden-dtype");
  if (!golden_raw) return fail(golden_raw.error());
  auto actual_raw = parse_raw_layout(words.actual.dtype, words.actual.shape, "--my-dtype");
  if (!actual_raw) return fail(actual_raw.error());
  o.golden.raw = std::move(*golden_raw);
  o.actual.raw = std::move(*actual_raw);
  if (words.compat == "msit") o.compat = compare::MetricCompat::kMsit;
  if (words.compat == "ait") o.compat = compare::MetricCompat::kAit;
  if (!words.fail_on.empty()) {
    auto conditions = compare::parse_fail_on(words.fail_on);
    if (!conditions) return fail(conditions.error());
    o.fail_on = std::move(*conditions);
  }
  return o;
}

Result<Command> understand_dump(Words& words) {
  words.dump.rest.record.log_level = words.log_level;
  auto options = understand_dump(words.dump);
  if (!options) return fail(options.error());
  return std::move(*options);
}

Result<Command> understand_aclcmp(Words& words) {
  AclcmpOptions options = words.aclcmp;
  if (words.aclcmp_exec.empty() == options.labels.empty())
    return fail(Error(ErrorCode::kUsage) << "give either --exec or --labels");
  if (!words.aclcmp_exec.empty()) {
    auto command = launch::split_command(words.aclcmp_exec);
    if (!command) return fail(Error(ErrorCode::kUsage) << "--exec: " << command.error().message());
    options.command = std::move(*command);
  }
  return options;
}

Result<Command> understand_errcheck(Words& words) {
  words.errcheck.rest.check.log_level = words.log_level;
  auto options = understand_errcheck(words.errcheck);
  if (!options) return fail(options.error());
  return std::move(*options);
}

Result<Command> understand_show(Words& words) {
  ShowOptions o = std::move(words.show_options);
  auto raw = parse_raw_layout(words.show.dtype, words.show.shape, "--dtype");
  if (!raw) return fail(raw.error());
  o.source.raw = std::move(*raw);
  return o;
}

}  // namespace

Result<Command> parse_command_line(const std::string& program, std::vector<std::string> arguments) {
  arguments = rewrite_arguments(arguments);
  Words words;
  auto help = std::make_shared<Help>();
  CLI::App root("ait finds the operator at which a large language model goes numerically wrong.",
                program);
  root.formatter(help);
  root.set_help_flag("-h,--help", "print this help");
  root.set_version_flag("--version", "ait " AIT_VERSION, "print the version");
  help->page(&root) = {"COMMAND [options]",
                       "  " + program + " llm compare -gp golden.npy -mp actual.npy\n  " + program +
                           " show layer.pth\n  " + program + " doctor\n",
                       kExitStatus};
  CLI::App* llm = root.add_subcommand("llm", "Large language models: compare, dump, errcheck");
  help->page(llm) = {"COMMAND [options]",
                     "  " + program + " llm compare -gp golden.npy -mp actual.npy\n  " + program +
                         " llm dump --exec \"bash run.sh\" -o out\n",
                     kExitStatus};
  const CLI::App* compare = add_compare(*llm, *help, program, words);
  CLI::App* debug = root.add_subcommand("debug", "On-line comparison with labels");
  CLI::App* debug_compare = debug->add_subcommand("compare", "Compare while a script runs");
  for (CLI::App* group : {debug, debug_compare})
    help->page(group) = {"COMMAND [options]",
                         "  " + program + " debug compare aclcmp --exec \"bash run.sh\"\n",
                         kExitStatus};
  const CLI::App* aclcmp = add_aclcmp(*debug_compare, *help, program, words);
  const CLI::App* dump = add_dump(*llm, *help, program, words);
  const CLI::App* errcheck = add_errcheck(*llm, *help, program, words);
  const CLI::App* show = add_show(root, *help, program, words);
  const CLI::App* demo = add_demo(root, *help, program, words);
  const CLI::App* doctor = add_doctor(root, *help, program, words);

  const auto usage = [&](std::string_view what) {
    return Error(ErrorCode::kUsage)
           << what << "; see `" << program << given_commands(root) << " --help`";
  };
  try {
    std::reverse(arguments.begin(), arguments.end());
    root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return PrintText{root.help()};
  } catch (const CLI::CallForVersion&) {
    return PrintText{"ait " AIT_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    std::string what = error.what();
    while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
    return fail(usage(what));
  }
  const auto level = parse_log_level(words.log_level);
  if (!level)
    return fail(usage("-l does not know '" + printable(words.log_level) +
                      "', give debug, info, warning, error, fatal or critical"));
  set_log_level(*level);

  const auto with_hint = [&](Result<Command> command) {
    return command ? command : Result<Command>(fail(usage(command.error().message())));
  };
  if (compare->parsed()) return with_hint(understand_compare(words));
  if (aclcmp->parsed()) return with_hint(understand_aclcmp(words));
  if (dump->parsed()) return with_hint(understand_dump(words));
  if (errcheck->parsed()) return with_hint(understand_errcheck(words));
  if (show->parsed()) return with_hint(understand_show(words));
  if (demo->parsed()) return words.demo;
  if (doctor->parsed()) return words.doctor;
  return PrintText{root.help(), false};
}

}  // namespace ait::cli
