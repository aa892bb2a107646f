#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>

namespace ait::cli {
namespace {

// One character of UTF-8 and how many bytes it has. Help texts are our own and well formed.
std::pair<uint32_t, size_t> character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  uint32_t code = bytes == 1 ? first : first & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes && i < text.size(); ++i)
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  return {code, bytes};
}

// As roff reads it: nothing in it is a request, and a dash is one that can be copied.
std::string roff(std::string_view text) {
  std::string out;
  bool begins_line = true;
  while (!text.empty()) {
    const auto [code, bytes] = character(text);
    if (begins_line && (code == '.' || code == '\'')) out += "\\&";
    if (code >= 0x80)
      out += fmt::format("\\[u{:04X}]", code);
    else if (code == '-')
      out += "\\-";
    else if (code == '\\')
      out += "\\e";
    else
      out += static_cast<char>(code);
    begins_line = code == '\n';
    text.remove_prefix(std::min(bytes, text.size()));
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }

std::string indented_lines(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!line.empty()) out += roff(line) + "\n.br\n";
  }
  return out.substr(0, out.size() - std::min<size_t>(out.size(), 4));  // without the last request
}

std::string option_entry(const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.meta.empty())
    names += (names.empty() ? "" : " ") + ("\\fI" + roff(option.meta) + "\\fR");
  return ".TP\n" + names + "\n" + roff(option.help) + "\n";
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

// What the last line of a page points to: the program and, from there, its commands.
std::string see_also(const CommandText& command, const std::vector<CommandText>& all) {
  std::string out;
  for (const CommandText& other : all) {
    const bool is_shown =
        command.path.empty() ? !other.path.empty() && other.commands.empty() : other.path.empty();
    if (is_shown) out += (out.empty() ? "" : ",\n") + bold(man_name(other)) + "(1)";
  }
  return out;
}

}  // namespace

std::string man_name(const CommandText& command) {
  std::string name = command.path.empty() ? "ait" : "ait-" + command.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const CommandText& command, const std::vector<CommandText>& all) {
  const std::string name = man_name(command);
  const std::string words = command.path.empty() ? "ait" : "ait " + command.path;
  std::string out =
      fmt::format(".TH {} 1 \"\" \"ait {}\" \"ait\"\n", roff(upper(name)), AIT_VERSION);
  std::string purpose = command.purpose;
  if (purpose.ends_with('.')) purpose.pop_back();
  if (purpose.starts_with("ait ")) purpose.erase(0, 4);  // the page's name stands before it
  out += ".SH NAME\n" + roff(name) + " \\- " + roff(purpose) + "\n";
  out += ".SH SYNOPSIS\n" + bold(words) + " " + roff(command.page.usage) + "\n";
  if (command.path.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandText& other : all)
      if (!other.path.empty() && other.commands.empty())
        out += ".TP\n" + bold("ait " + other.path) + "\n" + roff(other.purpose) + "\n";
  }
  if (!command.operands.empty()) {
    out += ".SH OPERANDS\n";
    for (const OptionText& operand : command.operands) out += option_entry(operand);
  }
  out += ".SH OPTIONS\n";
  std::string group;
  for (const OptionText& option : command.options) {
    if (option.group != group) out += ".SS " + roff(option.group) + "\n";
    group = option.group;
    out += option_entry(option);
  }
  if (!command.page.examples.empty()) {
    out += ".SH EXAMPLES\n.nf\n";
    for (const std::string& example : command.page.examples) out += roff("ait " + example) + "\n";
    out += ".fi\n";
  }
  out += ".SH EXIT STATUS\n" + indented_lines(command.page.exit_status) + "\n";
  return out + ".SH SEE ALSO\n" + see_also(command, all) + "\n";
}

}  // namespace ait::cli
