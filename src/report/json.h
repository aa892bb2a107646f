// JSON documents built value by value, in the order given.
//
//   JsonObject row;
//   row.set("cosine_similarity", 0.5).set("golden_shape", std::vector<int64_t>{2, 3});
//   std::string text = Json(row).text();
//
// Numbers carry the whole double. JSON has no NaN or infinity: they become the strings "nan",
// "inf", "-inf".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/cell.h"

namespace ait::report {

class Json;
using JsonArray = std::vector<Json>;

class JsonObject {
 public:
  JsonObject& set(std::string_view name, Json value);
  const std::vector<std::pair<std::string, Json>>& members() const { return members_; }

 private:
  std::vector<std::pair<std::string, Json>> members_;
};

class Json {
 public:
  template <typename T>
    requires std::is_constructible_v<Cell, T>
  Json(T&& value) : value_(Cell(std::forward<T>(value))) {}  // NOLINT: meant to convert
  Json(JsonArray value) : value_(std::move(value)) {}        // NOLINT
  Json(JsonObject value) : value_(std::move(value)) {}       // NOLINT

  // A flag, number or shape: short enough to share a line with others.
  bool is_short() const {
    const Cell* cell = std::get_if<Cell>(&value_);
    return cell != nullptr && !std::holds_alternative<std::string>(*cell);
  }

  // Indented by two blanks a level, lists of short values on one line; without a line end.
  std::string text(size_t depth = 0) const;

 private:
  std::variant<Cell, JsonArray, JsonObject> value_;
};

}  // namespace ait::report
