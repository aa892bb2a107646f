#include "capture/op_kind.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace ait::capture {

OpKind kind_by_words(std::span<const KindWord> words, std::string_view type) {
  std::string name(type);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const KindWord& word : words)
    if (name.find(word.part) != std::string::npos) return word.kind;
  return OpKind::kUnknown;
}

}  // namespace ait::capture
