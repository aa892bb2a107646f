#include "tables/labels.h"

#include <gtest/gtest.h>

namespace ait::tables {
namespace {

std::string reason_of(const std::string& reason) {
  compare::Row row;
  row.reason = reason;
  for (const ComparisonColumn* column : label_columns(false))
    if (column->name == "cmp_fail_reason") return column->text(row);
  return "no such column";
}

TEST(LabelColumns, NameTheSidesAsTheirOtherColumnsDo) {
  EXPECT_EQ(reason_of("golden_data includes NAN or inf. my_data is all zero."),
            "pta_data includes NAN or inf. acl_data is all zero.");
  EXPECT_EQ(reason_of("golden_data_path: /run/my_data/x.bin is not a file."),
            "pta_data_path: /run/my_data/x.bin is not a file.");
  EXPECT_EQ(reason_of("data shape doesn't match."), "data shape doesn't match.");
}

}  // namespace
}  // namespace ait::tables
