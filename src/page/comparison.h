// The page of a comparison: its rows, what was found, and a closer look at the worst of them.
//
//   page::ComparisonPage rows;
//   for (const compare::Row& row : judged) rows.add(row);
//   page::ComparisonFacts facts;
//   facts.findings = &findings;
//   facts.pair_of = [&](size_t number) { return pairs.at(number); };
//   auto written = page::write_page("report.html", std::move(rows).finish(facts));
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "compare/row.h"
#include "locate/examine.h"
#include "locate/locate.h"
#include "page/page.h"
#include "summary/comparison.h"
#include "tables/comparison.h"

namespace ait::page {

// More rows make a page that a browser is slow with; the csv has all of them.
inline constexpr size_t kMostRows = 200'000;

struct ComparisonFacts {
  const std::vector<locate::Finding>* findings = nullptr;
  locate::PairOf pair_of;  // to look at tensors
  bool in_order = false;   // rows are in the order of the computation
  bool complete = true;    // all rows were there to be added
  std::string report;      // path of the csv or of the store
  std::string command;     // that makes the page, as it was typed
  std::string version;     // of ait
  std::string note;        // of the store of rows: JSON about the comparison
  std::string noise;       // the run that noise was measured of; empty: none
};

class ComparisonPage {
 public:
  ComparisonPage();
  // In their order, with their judgements.
  void add(const compare::Row& row);
  // Looks at the tensors of findings and of the worst rows; those that cannot be read any more are
  // left out.
  Page finish(const ComparisonFacts& facts) &&;

 private:
  Page page_;
  tables::ComparisonColumns columns_;
  summary::ComparisonSummary found_;
  std::multimap<double, size_t> worst_;  // numbers of the rows that stand out most
  std::string golden_path_;
  std::string actual_path_;
};

}  // namespace ait::page
