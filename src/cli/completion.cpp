#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

namespace ait::cli {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(between)) + word;
  return out;
}

// How the scripts name a command: each of its words with a blank before it, so that a word can be
// added to what was found so far. The program itself is the empty text.
std::string key(const CommandText& command) {
  return command.path.empty() ? "" : " " + command.path;
}

std::string last_word(const CommandText& command) {
  return command.path.substr(command.path.rfind(' ') + 1);  // npos + 1 is 0
}

bool takes_files(const CommandText& command) {
  return std::any_of(command.operands.begin(), command.operands.end(),
                     [](const OptionText& operand) { return names_file(operand.meta); });
}

// `word` in single quotes, as bash and zsh read them.
std::string quoted(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// All that can be typed before the options: ' llm'|' llm compare'|…
std::string known_paths(const std::vector<CommandText>& commands, std::string_view between) {
  std::vector<std::string> out;
  for (const CommandText& command : commands)
    if (!command.path.empty()) out.push_back(quoted(key(command)));
  return joined(out, between);
}

// The first sentence of a help text, on one line.
std::string short_help(const std::string& help) {
  std::string out;
  for (const char c : help.substr(0, help.find(';'))) out += c == '\n' ? ' ' : c;
  return out;
}

std::string bash_script(const std::vector<CommandText>& commands) {
  std::string values;  // what follows an option
  std::string words;   // what may stand anywhere else
  for (const CommandText& command : commands) {
    std::vector<std::string> names = command.commands;
    for (const OptionText& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.meta.empty()) continue;
      std::vector<std::string> patterns;
      patterns.reserve(option.names.size());
      for (const std::string& name : option.names)
        patterns.push_back(quoted(key(command) + "|" + name));
      const std::string action = !option.choices.empty()
                                     ? "words=" + quoted(joined(option.choices, " "))
                                 : names_file(option.meta) ? "files=yes"
                                                           : "return";
      values += fmt::format("    {}) {} ;;\n", joined(patterns, " | "), action);
    }
    words +=
        fmt::format("    {}) words={}{} ;;\n", quoted(key(command)), quoted(joined(names, " ")),
                    takes_files(command) ? "; [[ $current == -* ]] || files=yes" : "");
  }
  return fmt::format(R"(# bash completion for ait, made by `ait completion bash`.
_ait() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local asked='' words='' files='' i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$asked ${{COMP_WORDS[i]}}" in
      {}) asked+=" ${{COMP_WORDS[i]}}" ;;
      *) break ;;
    esac
  done
  COMPREPLY=()
  case "$asked|$previous" in
{}    *) ;;
  esac
  [[ -n $words || -n $files ]] || case "$asked" in
{}  esac
  if [[ -n $files ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}}
complete -F _ait ait msit
)",
                     known_paths(commands, " | "), values, words);
}

// Inside of an _arguments specification `:`, `[` and `]` have a meaning.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_script(const std::vector<CommandText>& commands) {
  std::string cases;
  for (const CommandText& command : commands) {
    if (!command.commands.empty()) {
      std::vector<std::string> words;
      for (const CommandText& other : commands)
        if (!other.path.empty() && group_of(other.path) == command.path)
          words.push_back(quoted(zsh_text(last_word(other)) + ":" + zsh_text(other.purpose)));
      cases +=
          fmt::format("    ({})\n      commands=({})\n      _describe command commands\n      ;;\n",
                      quoted(key(command)), joined(words, " "));
      continue;
    }
    std::vector<std::string> specifications;
    for (const OptionText& option : command.options) {
      const std::string value =
          option.meta.empty() ? ""
          : !option.choices.empty()
              ? ":" + zsh_text(option.meta) + ":(" + joined(option.choices, " ") + ")"
              : ":" + zsh_text(option.meta) + ":" +
                    (option.meta == "DIR"      ? "_files -/"
                     : names_file(option.meta) ? "_files"
                                               : "");
      for (const std::string& name : option.names)
        specifications.push_back(quoted(fmt::format("({}){}[{}]{}", joined(option.names, " "), name,
                                                    zsh_text(short_help(option.help)), value)));
    }
    for (const OptionText& operand : command.operands)
      specifications.push_back(
          quoted("::" + zsh_text(operand.meta) + ":" + (names_file(operand.meta) ? "_files" : "")));
    cases += fmt::format("    ({})\n      _arguments \\\n        {}\n      ;;\n",
                         quoted(key(command)), joined(specifications, " \\\n        "));
  }
  return fmt::format(R"(#compdef ait msit
# zsh completion for ait, made by `ait completion zsh`.
_ait() {{
  local -a commands
  local asked=''
  integer i=2
  while (( i < CURRENT )); do
    case "$asked ${{words[i]}}" in
      ({}) asked+=" ${{words[i]}}"; (( i += 1 )) ;;
      (*) break ;;
    esac
  done
  words=("${{words[1]}}" "${{(@)words[i,-1]}}")
  (( CURRENT -= i - 2 ))
  case "$asked" in
{}  esac
}}
_ait "$@"
)",
                     known_paths(commands, " | "), cases);
}

// fish reads \ and ' inside of single quotes.
std::string fish_quoted(std::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string fish_script(const std::vector<CommandText>& commands) {
  std::string lines;
  const auto add = [&](const CommandText& command, const std::string& rest) {
    for (const char* program : {"ait", "msit"})
      lines += fmt::format("complete -c {} -n {} {}\n", program,
                           fish_quoted("__ait_asked " + fish_quoted(key(command))), rest);
  };
  for (const CommandText& command : commands) {
    if (!command.path.empty()) {
      CommandText above = command;
      above.path = group_of(command.path);
      add(above, fmt::format("-a {} -d {}", last_word(command), fish_quoted(command.purpose)));
    }
    for (const OptionText& option : command.options) {
      std::string rest;
      for (const std::string& name : option.names)
        rest += name.starts_with("--") ? "-l " + name.substr(2) + " "
                : name.size() == 2     ? "-s " + name.substr(1) + " "
                                       : "-o " + name.substr(1) + " ";
      if (!option.choices.empty())
        rest += "-x -a " + fish_quoted(joined(option.choices, " ")) + " ";
      else if (names_file(option.meta))
        rest += "-r -F ";
      else if (!option.meta.empty())
        rest += "-x ";
      add(command, rest + "-d " + fish_quoted(short_help(option.help)));
    }
    if (takes_files(command)) add(command, "-F");
  }
  return fmt::format(R"(# fish completion for ait, made by `ait completion fish`.
function __ait_asked
    set -l asked ''
    for word in (commandline -opc)[2..]
        contains -- "$asked $word" {} || break
        set asked "$asked $word"
    end
    test "$asked" = "$argv[1]"
end
complete -c ait -f
complete -c msit -f
{})",
                     known_paths(commands, " "), lines);
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandText>& commands) {
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return bash_script(commands);
}

}  // namespace ait::cli
