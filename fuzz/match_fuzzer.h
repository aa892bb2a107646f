// Mapping files of types, and whole folders: what a tree of files of outside origin is taken for,
// and how two of them are paired. The replay of the corpora (tests/attacks) includes it too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/input_folder.h"
#include "match/op_mapping.h"
#include "match/pair_paths.h"

namespace ait::fuzz {

inline int read_as_op_mapping(const uint8_t* data, size_t size) {
  InputFolder::with("op_mapping_file.json", data, size);
  static_cast<void>(match::read_op_mapping(InputFolder::only().path()));
  return 0;
}

// Few enough that an input stays fast.
inline constexpr size_t kMaxFiles = 48;
inline constexpr size_t kMaxPathBytes = 160;
inline constexpr size_t kMaxPairs = 256;

// A path that stays below the folder.
inline std::string tame(std::string_view path) {
  std::string out;
  while (!path.empty() && out.size() < kMaxPathBytes) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.empty() || part == "." || part == "..") continue;
    out += (out.empty() ? "" : "/") + std::string(part.substr(0, kMaxPathBytes));
  }
  return out;
}

// "@3" is a tensor of the acceleration library whose values begin with 3, [4, 8], and "&3" the same
// as the output of an operation that GE dumped; other contents are taken as they are.
inline std::string content_of(std::string_view text) {
  using namespace std::string_literals;
  if (text.size() != 2 || (text[0] != '@' && text[0] != '&')) return std::string(text);
  std::string out =
      text[0] == '@'
          ? "$Version=1.0\n$Object.Count=1\n$Object.Length=128\nformat=2\ndtype=0\ndims=4,8\n"
            "$Object.data=0,128\n$End=1\n"s
          : "\x16\0\0\0\0\0\0\0\x0a\x03"
            "2.0\x10\x01\x1a\x0d\x08\x01\x10\x02\x1a\x04\x0a\x02\x04\x08\x30\x80\x01"s;
  for (uint32_t i = 0; i < 32; ++i) {
    const auto value = static_cast<float>((i + static_cast<unsigned char>(text[1])) * 2654435761u);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return out;
}

// A line of the input is a path, a blank and what the file holds, or a path alone: an empty file.
// Paths below golden/ and my/ are the two runs.
inline int read_as_dump_tree(const uint8_t* data, size_t size) {
  const InputFolder& folder = InputFolder::only();
  folder.clear();
  std::string_view lines(reinterpret_cast<const char*>(data), size);
  for (size_t files = 0; files < kMaxFiles && !lines.empty(); ++files) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const size_t blank = std::min(line.find(' '), line.size());
    const std::string path = tame(line.substr(0, blank));
    if (!path.empty())
      folder.write(path, content_of(line.substr(std::min(blank + 1, line.size()))));
  }
  match::Inputs inputs;
  inputs.golden = folder.path() + "/golden";
  inputs.actual = folder.path() + "/my";
  const auto list = match::pair_paths(inputs);
  for (size_t i = 0; list && i < std::min(list->pairs.count, kMaxPairs); ++i) {
    const match::Pair pair = list->pairs.at(i);
    if (!pair.golden.present() && !pair.actual.present()) std::abort();
  }
  return 0;
}

}  // namespace ait::fuzz
