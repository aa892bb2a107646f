#include "cli/arguments.h"

#include <algorithm>
#include <array>

namespace ait::cli {
namespace {

struct Alias {
  std::string_view seed;
  std::string_view option;
  std::string_view command = {};  // only under this one, where two commands give it different names
};

constexpr std::array<Alias, 40> kAliases = {{
    {"-gp", "--golden-path"},
    {"-mp", "--my-path"},
    {"-mf", "--op-mapping-file"},
    {"-cl", "--cmp-level"},
    {"-st", "--stats"},
    {"-alg", "--custom-algorithms"},
    {"-ids", "--save-operation-ids", "dump"},
    {"--ids", "--save-operation-ids", "dump"},
    {"-ids", "--operation-ids", "opcheck"},
    {"--ids", "--operation-ids", "opcheck"},
    {"-er", "--execute-range"},
    {"-sd", "--only-save-desc"},
    {"-stp", "--save-tensor-part"},
    {"-opname", "--operation-name"},
    {"--opname", "--operation-name"},
    {"-child", "--save-operation-child"},
    {"-time", "--save-time"},
    {"-tiling", "--save-tiling"},
    {"-device", "--device-id"},
    {"-seed", "--seed"},
    {"-metric", "--precision-metric"},
    {"--metric", "--precision-metric"},
    {"-pmode", "--precision-mode"},
    {"-rerun", "--atb-rerun"},
    {"--rerun", "--atb-rerun"},
    {"-forward", "--forward"},
    {"-backward", "--backward"},
    {"-save_error_data", "--save-error-data"},
    {"--out_path", "--output"},
    {"--error_data_path", "--error-data-path"},
    {"--data_path", "--data-path"},
    {"--raw_bench", "--raw-bench"},
    {"-csv_path", "--result-csv"},
    {"--time_limit", "--time-limit"},
    {"--max_memory", "--max-memory"},
    {"--fail_on", "--fail-on"},
    {"--jit_compile", "--jit-compile"},
    {"--result_csv_path", "--result-csv"},
    {"--forward_input_file", "--forward"},
    {"--backward_input_file", "--backward"},
}};

bool is_command(const std::vector<std::string>& arguments, std::string_view name) {
  // Commands come before any option: `ait llm dump --exec "…"`.
  const auto words_end =
      std::find_if(arguments.begin(), arguments.end(),
                   [](const std::string& argument) { return argument.starts_with('-'); });
  return std::find(arguments.begin(), words_end, name) != words_end;
}

}  // namespace

std::vector<std::string> rewrite_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  bool rewriting = true;
  for (const std::string& argument : arguments) {
    if (argument == "--") rewriting = false;
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view name = std::string_view(argument).substr(0, equals);
    const auto alias = std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& candidate) {
      return candidate.seed == name &&
             (candidate.command.empty() || is_command(arguments, candidate.command));
    });
    const bool rewrite = rewriting && alias != kAliases.end();
    out.push_back(rewrite ? std::string(alias->option) + argument.substr(equals) : argument);
  }
  return out;
}

std::string_view seed_spelling(std::string_view long_option) {
  const auto alias = std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& candidate) {
    return candidate.option == long_option && !candidate.seed.starts_with("--");
  });
  return alias == kAliases.end() ? std::string_view() : alias->seed;
}

}  // namespace ait::cli
