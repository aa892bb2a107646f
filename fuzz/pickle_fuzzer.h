// The pickle reader alone, without an archive around it: every value it made is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/pickle.h"

namespace ait::fuzz {

// Something that depends on every byte of the text, so that the reads are not optimised away.
inline size_t sum(std::string_view text) {
  size_t total = 0;
  for (const char c : text) total += static_cast<unsigned char>(c);
  return total;
}

inline size_t look_at(const formats::pickle::Document& document, formats::pickle::Id id) {
  using enum formats::pickle::Kind;
  switch (document.kind(id)) {
    case kText:
    case kBytes:
    case kBigInt:
      return sum(document.text(id));
    case kGlobal:
      return document.global(id).text().size();
    case kTuple:
    case kList:
    case kSet:
    case kPersistent:
    case kCall: {
      size_t total = 0;
      for (const formats::pickle::Id item : document.items(id)) total += item;
      return total;
    }
    case kDict: {
      size_t total = 0;
      document.each_pair(id, [&](formats::pickle::Id key, formats::pickle::Id value) {
        total += key + value;
        return true;
      });
      return total;
    }
    default:
      return static_cast<size_t>(document.integer(id));
  }
}

inline int read_as_pickle(const uint8_t* data, size_t size) {
  const auto document = formats::pickle::parse(std::as_bytes(std::span(data, size)), {"fuzz", 0});
  if (!document) return 0;
  // Calls share their arguments, so looking at all of them is quadratic at worst.
  constexpr formats::pickle::Id kMaxLooks = 4096;
  size_t total = look_at(*document, document->root());
  for (formats::pickle::Id id = 0; id < document->size() && id < kMaxLooks; ++id)
    total += look_at(*document, id);
  volatile size_t sink = total;
  static_cast<void>(sink);
  return 0;
}

}  // namespace ait::fuzz
