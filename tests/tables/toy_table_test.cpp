// A table of rows that ait knows nothing of: adding a column, or a whole table, is one line each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "report/column.h"

namespace ait::report {
namespace {

using ::testing::ElementsAre;

struct Fruit {
  std::string name;
  double grams = 0;
  bool is_ripe = false;
};

constexpr auto kFruits = std::to_array<Column<Fruit>>({
    {"name", ColumnGroup::kSubject, [](const Fruit& f) { return Cell(f.name); }},
    {"grams", ColumnGroup::kMetric, [](const Fruit& f) { return Cell(f.grams); }},
    {"share", ColumnGroup::kMetric, [](const Fruit& f) { return Cell(f.grams / 3); },
     NumberStyle::kTenDecimals},
    {"ripe", ColumnGroup::kExtended, [](const Fruit& f) { return Cell(f.is_ripe); }},
});

TEST(ToyTable, ServesCsvAndJsonOfItsOwnRows) {
  const Fruit pear{"pear", 200, true};
  const auto all = choose<Fruit>(kFruits, true);
  EXPECT_THAT(column_names(all), ElementsAre("name", "grams", "share", "ripe"));
  EXPECT_THAT(column_texts(all, pear), ElementsAre("pear", "200.0", "66.6666666667", "True"));
  EXPECT_THAT(column_names(choose<Fruit>(kFruits, false)), ElementsAre("name", "grams", "share"));
  EXPECT_EQ(column_json(all, pear).members().size(), 4U);
  EXPECT_EQ(find_column<Fruit>(kFruits, "grams")->text(pear), "200.0");
  EXPECT_EQ(find_column<Fruit>(kFruits, "colour"), nullptr);
}

}  // namespace
}  // namespace ait::report
