#include "page/detail.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tensors.h"

namespace ait::page {
namespace {

nlohmann::json look(const Tensor& golden, const Tensor& actual) {
  const auto detail = detail_of(golden, actual);
  return detail ? nlohmann::json::parse(report::Json(*detail).text()) : nlohmann::json();
}

TEST(Detail, SaysWhereTheErrorSitsAndWhichElementsAreFarthestOff) {
  std::vector<float> values(200 * 300, 1.0F);
  values[7] = -1;
  const Tensor golden = *floats({200, 300}, values);
  values[150 * 300 + 299] = 3;
  values[0] = 1.5;
  const auto seen = look(golden, *floats({200, 300}, values));
  EXPECT_EQ(seen["elements"], 60000);
  EXPECT_EQ(seen["map"]["map_rows"], 48);
  EXPECT_EQ(seen["map"]["map_columns"], 96);
  const auto& errors = seen["map"]["errors"];
  ASSERT_EQ(errors.size(), 48U * 96U);
  EXPECT_GT(errors[36 * 96 + 95], 0.4) << "row 150 of 200, the last column";
  EXPECT_GT(errors[0], 0.1);
  EXPECT_EQ(errors[40 * 96 + 5], 0.0);
  ASSERT_EQ(seen["worst"].size(), 2U) << "the others do not differ";
  EXPECT_EQ(seen["worst"][0]["row"], 150);
  EXPECT_EQ(seen["worst"][0]["column"], 299);
  EXPECT_EQ(seen["worst"][0]["my"], 3.0);
  EXPECT_EQ(seen["worst"][1]["index"], 0);
  EXPECT_EQ(seen["histogram"]["low"], -1.0);
  EXPECT_EQ(seen["histogram"]["high"], 3.0);
  EXPECT_EQ(seen["histogram"]["golden"][0], 1);
  EXPECT_EQ(seen["histogram"]["my"][47], 1);
}

TEST(Detail, PutsWhatIsNotFiniteFirst) {
  const auto seen = look(*floats({3}, {1, 2, 3}), *floats({3}, {1, NAN, 30}));
  EXPECT_EQ(seen["worst"][0]["index"], 1);
  EXPECT_EQ(seen["worst"][0]["my"], "nan");
  EXPECT_EQ(seen["map"]["errors"][1], "inf");
}

TEST(Detail, IsNoneOfWhatDoesNotFit) {
  EXPECT_FALSE(detail_of(*floats({2}, {1, 2}), *floats({1}, {1})));
  EXPECT_FALSE(detail_of(*floats({0}, {}), *floats({0}, {})));
}

}  // namespace
}  // namespace ait::page
