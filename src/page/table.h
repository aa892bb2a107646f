// The rows of a page, column by column, packed so that a browser unpacks a column only when it is
// looked at.
//
//   Table table;
//   const size_t name = table.add_column("data_id");
//   const size_t error = table.add_column("error");
//   table.set(name, report::Cell(std::string("layers.0")));
//   table.set(error, report::Cell(0.5));
//   table.end_row();
//
// Numbers become float32, or float64 where that would lose something that a report shows; texts
// become a list of different ones and numbers into it. docs/report.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/cell.h"
#include "report/json.h"

namespace ait::page {

// A part of the page's data: `id` is what the page asks for, `bytes` are what it gets.
struct Section {
  std::string id;
  std::string bytes;
};

class Table {
 public:
  // Returns its number. All columns come before the first row. `exact`: as float64, whatever it holds.
  size_t add_column(std::string_view name, bool exact = false);
  // The cell of the row that is being made; nothing is set where this is not called.
  void set(size_t column, const report::Cell& cell);
  void end_row() { ++rows_; }

  size_t rows() const { return rows_; }

  // The columns that hold something: {"name", "kind", "id"}, and their sections.
  report::JsonArray pack(std::vector<Section>& out) const;

 private:
  struct Column {
    std::string name;
    bool exact = false;
    std::vector<double> numbers;    // where one was set; what was not is missing
    std::vector<uint32_t> indices;  // into `texts`, where one was set; 0 is the empty text
    std::vector<std::string> texts;
    std::unordered_map<std::string, uint32_t> known;
  };
  void set_number(Column& column, double value) const;
  void set_text(Column& column, std::string text) const;

  size_t rows_ = 0;
  std::vector<Column> columns_;
};

}  // namespace ait::page
