#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string_view>

namespace ait_llama {
namespace {

using ait::Error;
using ait::ErrorCode;
using ait::fail;
using ait::Result;

constexpr size_t kMaxSteps = 1 << 20;
constexpr size_t kMaxRanks = 16;
constexpr size_t kMaxThreads = 1024;

constexpr const char* kFooter = R"(
Examples:
  ait-llama --make-model folder
  ait-llama --model folder --tokens 1,15,7 --steps 8
  ait-llama --model folder --tokens "1,15,7;2,9" --steps 8 --dtype fp16 --logits out.npy
  ait-llama --model folder --tokens 1,15,7 --fault epsilon@layer=1,op=RmsNorm,size=0.01
  ait llm dump --exec "ait-llama --model folder --tokens 1,15,7 --steps 2"

Exit status:
  0  done
  2  wrong usage, an unreadable model, or a run that failed; one line says why)";

struct Words {
  std::string tokens, dtype = "fp32", padding = "none";
  std::vector<std::string> faults;
  std::string perturb;
  bool list_faults = false;
};

Result<Options> understand(const Words& words, Options options) {
  if (options.folder.empty())
    return fail(Error(ErrorCode::kUsage) << "--model is missing: a folder with config.json and "
                                            "*.safetensors");
  if (words.tokens.empty())
    return fail(Error(ErrorCode::kUsage) << "--tokens is missing: prompts as 1,15,7;2,9");
  auto prompts = parse_tokens(words.tokens);
  if (!prompts) return fail(prompts.error());
  options.prompts = std::move(*prompts);
  auto type = atb_speed::parse_model_type(words.dtype);
  if (!type) return fail(type.error());
  options.model.type = *type;
  options.model.padding =
      words.padding == "left" ? atb_speed::Padding::kLeft : atb_speed::Padding::kNone;
  for (const std::string& text : words.faults) {
    auto fault = atb_speed::parse_fault(text);
    if (!fault) return fail(fault.error());
    options.model.faults.push_back(*fault);
  }
  if (!words.perturb.empty()) {
    auto unit = atb_speed::parse_perturbation(words.perturb);
    if (!unit) return fail(unit.error());
    options.model.perturbation = *unit;
  }
  return options;
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> parse_tokens(const std::string& text) {
  std::vector<std::vector<int64_t>> prompts(1);
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip_blanks = [&] {
    while (at != end && *at == ' ') ++at;
  };
  while (true) {
    skip_blanks();
    int64_t token = 0;
    const auto read = std::from_chars(at, end, token);
    if (read.ec != std::errc() || token < 0)
      return fail(Error(ErrorCode::kUsage)
                  << "\"" << ait::printable(text) << "\" are no tokens; write 1,15,7 and ; between "
                  << "prompts");
    prompts.back().push_back(token);
    at = read.ptr;
    skip_blanks();
    if (at == end) return prompts;
    const char separator = *at++;
    if (separator == ';')
      prompts.emplace_back();
    else if (separator != ',')
      return fail(Error(ErrorCode::kUsage) << "\"" << ait::printable(text)
                                           << "\" are no tokens; between numbers stands , or ;");
  }
}

Result<Options> parse_options(std::vector<std::string> arguments) {
  Options options;
  Words words;
  CLI::App app("Run a llama-family model on the embedded acceleration library, greedily",
               "ait-llama");
  app.get_formatter()->column_width(26);
  app.footer(kFooter);
  app.add_option("--model", options.folder, "Hugging Face folder: config.json and *.safetensors")
      ->option_text("DIR");
  app.add_option("--tokens", words.tokens, "prompts as token ids: 1,15,7;2,9")->option_text("IDS");
  app.add_option("--steps", options.steps, "tokens to generate; 16 if not given")
      ->check(CLI::Range(size_t{1}, kMaxSteps))
      ->option_text("N");
  app.add_option("--dtype", words.dtype, "fp32 (if not given), fp16, bf16 or w8a8")
      ->option_text("TYPE");
  app.add_option("--padding", words.padding,
                 "none: prompts one after another; left: filled up to the longest")
      ->check(CLI::IsMember({"none", "left"}))
      ->option_text("HOW");
  app.add_option("--tp", options.ranks, "processes that share the model (tensor parallel)")
      ->check(CLI::Range(size_t{1}, kMaxRanks))
      ->option_text("N");
  app.add_option("--logits", options.logits_path, "store steps x batch x vocabulary as .npy")
      ->option_text("FILE");
  app.add_option("--fault", words.faults, "plant a fault, may be repeated; see --list-faults")
      ->option_text("KIND@layer=3,op=RmsNorm,round=0,size=0.01");
  app.add_option("--perturb", words.perturb,
                 "every operation is off by up to one rounding unit of bf16, fp16 or fp32, or by "
                 "up to this share: a run that shows how large noise is")
      ->option_text("TYPE|NUMBER");
  app.add_flag("--list-faults", words.list_faults, "the faults that can be planted");
  app.add_option("--make-model", options.make_model,
                 "write a small llama with seeded random weights there, and end")
      ->option_text("DIR");
  app.add_option("--threads", options.threads, "threads of each process; all cores if not given")
      ->check(CLI::Range(size_t{1}, kMaxThreads))
      ->option_text("N");
  app.add_flag("--time", options.time, "say on stderr how long prefill and decoding took");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    options.text = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return fail(Error(ErrorCode::kUsage) << error.what() << "; see ait-llama --help");
  }
  if (words.list_faults) {
    options.text = atb_speed::fault_list();
    return options;
  }
  if (!options.make_model.empty()) return options;
  return understand(words, std::move(options));
}

}  // namespace ait_llama
