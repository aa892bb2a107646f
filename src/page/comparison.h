// The page of a comparison: its rows, what was found, and a closer look at the worst of them.
//
//   page::ComparisonFacts facts;
//   facts.findings = &findings;
//   facts.pair_of = [&](size_t number) { return pairs.at(number); };
//   auto page = page::comparison_page(store, facts);
//   if (!page) return fail(page.error());
//   page::write_page("report.html", *page);
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "compare/row_store.h"
#include "locate/examine.h"
#include "locate/locate.h"
#include "page/page.h"

namespace ait::page {

// More rows make a page that a browser is slow with; the csv has all of them.
inline constexpr size_t kMostRows = 200'000;

struct ComparisonFacts {
  const std::vector<locate::Finding>* findings = nullptr;
  locate::PairOf pair_of;        // to look at tensors
  bool in_order = false;         // rows are in the order of the computation
  std::string report;            // path of the csv or of the store
  std::string command;           // that made it, as it was typed
  std::string version;           // of ait
  report::JsonObject more = {};  // of summary/pairing.h, where the runs were paired just now
};

// Fails where the store cannot be read. Tensors that cannot be read any more are not looked at.
Result<Page> comparison_page(const compare::RowStore& store, const ComparisonFacts& facts);

}  // namespace ait::page
