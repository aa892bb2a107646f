#include "page/table.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace ait::page {
namespace {

using report::Cell;

template <typename T>
T unplaned(const std::string& bytes, size_t count, size_t i) {
  std::string value;
  for (size_t k = 0; k < sizeof(T); ++k) value += bytes.at(k * count + i);
  T out;
  std::memcpy(&out, value.data(), sizeof(T));
  return out;
}

TEST(Table, KeepsWhatAReportShows) {
  Table table;
  const size_t error = table.add_column("error");
  const size_t cosine = table.add_column("cosine", true);
  const size_t count = table.add_column("count");
  const size_t name = table.add_column("name");
  table.add_column("nothing");
  table.set(error, Cell(0.1));
  table.set(cosine, Cell(0.99999999991));
  table.set(count, Cell(uint64_t{16777217}));
  table.set(name, Cell(std::string("x\"</script>")));
  table.end_row();
  table.set(error, Cell(std::nan("")));
  table.end_row();
  table.set(name, Cell(std::string("x\"</script>")));
  table.end_row();

  std::vector<Section> sections;
  const report::JsonArray columns = table.pack(sections);
  ASSERT_EQ(columns.size(), 4U) << "a column that holds nothing is left out";
  ASSERT_EQ(sections.size(), 5U);
  EXPECT_EQ(unplaned<float>(sections[0].bytes, 3, 0), 0.1F);
  EXPECT_TRUE(std::isnan(unplaned<float>(sections[0].bytes, 3, 1)));
  EXPECT_NE(unplaned<uint32_t>(sections[0].bytes, 3, 1), 0x7fc00a17U)
      << "measured, and not a number";
  EXPECT_EQ(unplaned<uint32_t>(sections[0].bytes, 3, 2), 0x7fc00a17U) << "not measured";
  EXPECT_EQ(unplaned<double>(sections[1].bytes, 3, 0), 0.99999999991);
  EXPECT_EQ(unplaned<double>(sections[2].bytes, 3, 0), 16777217.0) << "float32 would round it";
  EXPECT_EQ(unplaned<uint32_t>(sections[3].bytes, 3, 0), 1U);
  EXPECT_EQ(unplaned<uint32_t>(sections[3].bytes, 3, 1), 0U);
  EXPECT_EQ(unplaned<uint32_t>(sections[3].bytes, 3, 2), 1U);
  EXPECT_EQ(sections[4].id, "c3t");
  EXPECT_EQ(sections[4].bytes, "[\"\",\n\"x\\\"</script>\"]");
}

}  // namespace
}  // namespace ait::page
