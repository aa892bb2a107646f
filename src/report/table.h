// Tables for the terminal: columns padded to their widest cell, two blanks between them.
//
//   Table table({{"metric"}, {"value", Align::kRight}});
//   table.add({"cosine_similarity", "1.0"});
//   std::string text = table.text(stdout_is_colourful());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ait::report {

enum class Align : uint8_t { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns. Control characters are made visible.
  void add(std::vector<std::string> cells);

  // Header (bold when coloured) and rows, each line ended; just the rows when no column has a
  // title.
  std::string text(bool coloured) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ait::report
