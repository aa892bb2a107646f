#include "launch/program.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <vector>

#include "base/text_file.h"
#include "launch/elf.h"

namespace ait::launch {
namespace {

constexpr int kMaxInterpreters = 4;         // as many as the kernel follows
constexpr size_t kMaxFirstLineBytes = 256;  // of which it looks at no more

enum class Kind : uint8_t { kMissing, kFolder, kNotExecutable, kProgram };

Kind look_at(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return Kind::kMissing;
  if (S_ISDIR(status.st_mode)) return Kind::kFolder;
  return ::access(path.c_str(), X_OK) == 0 ? Kind::kProgram : Kind::kNotExecutable;
}

// The words of a #! line; none for other files.
std::vector<std::string> interpreter_words(const std::string& path) {
  const auto file = open_regular(path, "program");
  if (!file) return {};
  std::array<char, kMaxFirstLineBytes> buffer{};
  const ssize_t got = ::read(file->descriptor.get(), buffer.data(), buffer.size());
  const std::string line(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (!line.starts_with("#!")) return {};
  std::istringstream words(line.substr(2, line.find('\n') - 2));
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(std::move(word));
  return out;
}

// In the words of an env command: what it will run.
std::optional<std::string> run_by_env(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i)
    if (!words[i].starts_with('-') && words[i].find('=') == std::string::npos) return words[i];
  return std::nullopt;
}

bool gets_other_rights(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) return true;
  return ::geteuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

Obstacle obstacle_of(const std::string& path) {
  const auto elf = read_elf(path);
  if (elf && !elf->this_machine) return Obstacle::kOtherMachine;
  if (elf && !elf->has_loader) return Obstacle::kStatic;
  return gets_other_rights(path) ? Obstacle::kOtherRights : Obstacle::kNone;
}

Result<std::string> find_file(const std::string& word, const std::string& search_path) {
  if (word.find('/') != std::string::npos) {
    switch (look_at(word)) {
      case Kind::kProgram:
        return word;
      case Kind::kMissing:
        return fail(Error(ErrorCode::kNotFound, word) << "no such program; check the path");
      case Kind::kFolder:
        return fail(Error(ErrorCode::kUnreadable, word) << "is a folder, not a program");
      case Kind::kNotExecutable:
        break;
    }
    return fail(Error(ErrorCode::kUnreadable, word)
                << "may not be executed; make it executable (chmod +x), or start it with what "
                   "runs it, as in \"bash "
                << printable(word) << "\"");
  }
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string path = (folder.empty() ? "." : folder) + "/" + word;
    if (look_at(path) == Kind::kProgram) return path;
  }
  Error missing(ErrorCode::kNotFound, word);
  missing << "no such program on PATH";
  if (word.find('=') != std::string::npos)
    missing << "; to set a variable for the command put env in front of it";
  else if (look_at(word) != Kind::kMissing)
    missing << "; for the one in this folder write ./" << printable(word);
  return fail(std::move(missing));
}

}  // namespace

Result<Program> find_program(const std::string& word, const std::string& search_path) {
  auto path = find_file(word, search_path);
  if (!path) return fail(path.error());
  Program program{*path, *path, Obstacle::kNone};
  for (int i = 0; i < kMaxInterpreters; ++i) {
    const auto words = interpreter_words(program.runs);
    if (words.empty()) break;
    program.runs = words[0];
    if (!words[0].ends_with("/env")) continue;
    const auto name = run_by_env(words);
    const auto found = name ? find_file(*name, search_path) : fail(Error(ErrorCode::kNotFound));
    if (!found) break;
    program.runs = *found;
  }
  program.obstacle = obstacle_of(program.runs);
  return program;
}

std::string obstacle_text(const Program& program) {
  const std::string name = printable(program.runs);
  switch (program.obstacle) {
    case Obstacle::kNone:
      break;
    case Obstacle::kStatic:
      return name + " is linked statically, so that nothing can be preloaded into it";
    case Obstacle::kOtherMachine:
      return name + " is a program for another kind of machine, which cannot load this probe";
    case Obstacle::kOtherRights:
      return name +
             " runs with other rights than yours (setuid, setgid or capabilities), so the probe "
             "cannot be loaded into it";
  }
  return {};
}

}  // namespace ait::launch
