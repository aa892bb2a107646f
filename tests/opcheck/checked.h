// All rows of a small dump.
#pragma once

#include <gtest/gtest.h>

#include "opcheck/check.h"

namespace ait::opcheck {

inline std::vector<CheckRow> check(const std::string& folder, const Options& options = {}) {
  auto cases = find_cases({.folder = folder});
  EXPECT_TRUE(cases) << cases.error().text();
  std::vector<CheckRow> out;
  const std::atomic<bool> stop = false;
  check_cases(cases->cases, options, stop, [&](std::vector<CheckRow>&& rows) {
    for (CheckRow& row : rows) out.push_back(std::move(row));
  });
  return out;
}

}  // namespace ait::opcheck
