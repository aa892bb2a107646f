// The parameters of an operation of the acceleration library: the JSON text of `param` in a
// topology, of op_param.json in a dump, and of OpParam in a table of operations.
//
//   AtbParam param(node.param);
//   const auto type = param.choice("elewiseType", ElewiseType::kUndefined);   // 8, "ELEWISE_ADD"
//   const double scale = param.number("quantParam.inputScale", 1.0);
//   if (auto read = param.finish(); !read) return fail(read.error());
//
// What is given last is the answer where the key is missing or null: the library's own default,
// which its specification names for every key. A dot leads into an object. Old dumps hold the same
// members without their object, so where "quantParam.inputScale" is missing "inputScale" is taken.
//
// The first mistake is remembered, in the text or in a value of another kind than was asked for;
// from then on every answer is the default, so a caller asks once, at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "graph/atb_enums.h"

namespace ait::graph {

class AtbParam {
 public:
  // The text must outlive it. Nothing, null and "" (two quotes) are parameters without any key:
  // that is how graphs and some operations are written.
  explicit AtbParam(std::string_view json);

  bool has(std::string_view key) const { return find(key) != nullptr; }

  int64_t integer(std::string_view key, int64_t missing);
  double number(std::string_view key, double missing);
  bool flag(std::string_view key, bool missing);
  std::string text(std::string_view key, std::string_view missing);
  std::vector<int64_t> integers(std::string_view key, std::vector<int64_t> missing);
  std::vector<double> numbers(std::string_view key, std::vector<double> missing);

  // A value of an enumeration (atb_enums.h), by its number or its name.
  template <typename Enum>
  Enum choice(std::string_view key, Enum missing) {
    return static_cast<Enum>(choose(key, static_cast<int64_t>(missing), values_of(missing)));
  }

  // Whether everything that was asked for was understood.
  Result<void> finish() const;

  // Every member that is not null as it is written, in the order of the text, those of an object as
  // "key.sub". Of equal names the last counts.
  struct Member {
    std::string name;
    std::string_view written;
  };
  const std::vector<Member>& members() const { return members_; }

 private:
  const Member* find(std::string_view key) const;
  template <typename Value, typename Read>
  Value read(std::string_view key, Value missing, std::string_view expected, Read take);
  int64_t choose(std::string_view key, int64_t missing, std::span<const AtbValue> values);

  std::vector<Member> members_;
  std::optional<Error> error_;
};

}  // namespace ait::graph
