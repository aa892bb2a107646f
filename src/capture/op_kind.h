// What an operation or a module does, as far as the name of its type tells. It is a hint that
// settles what data leave open; an unknown type costs nothing but that hint.
//
//   constexpr auto kWords = std::to_array<KindWord>({{"rmsnorm", OpKind::kNorm}, …});
//   operation.kind = kind_by_words(kWords, "LlamaRMSNorm");
//
// Each layout knows the type names of its tool and sets Operation::kind while it reads.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ait::capture {

enum class OpKind : uint8_t {
  kUnknown,
  kEmbedding,
  kNorm,
  kLinear,
  kActivation,
  kAttention,
  kAdd,
  kMultiply,
  kRotary,  // turns queries and keys; a table of angles is kOther
  kCache,
  kQuantise,
  kOther,  // computes something that nothing of the other side does
  kMove,   // passes data on, wholly or in part: split, transpose, all-reduce, cast
};

struct KindWord {
  std::string_view part;  // of the type's name, in lower case
  OpKind kind;
};

// The first word that the type contains, in any case, decides.
OpKind kind_by_words(std::span<const KindWord> words, std::string_view type);

}  // namespace ait::capture
