// The html report: one file that a browser opens from disk, with everything in it. It loads nothing
// from anywhere, and whatever names and texts a run holds, it shows them as text.
//
//   page::Page page;
//   page.about.set("kind", "comparison").set("report", path);
//   fill(page.table);
//   auto written = page::write_page("report.html", page);
//   if (!written) return fail(written.error());     // kUnwritable; kUsage: something else is there
//
// The page itself is written in TypeScript (web/) and embedded as src/page/page.html. Data go
// between as sections, compressed and in base64, so that no text of a run is ever part of the html.
// This is the main header of `page`: comparison.h makes the page of a comparison, results.h those
// of checks and dumps. Another kind of result is a function there and a view in web/src.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "page/table.h"
#include "report/json.h"

namespace ait::page {

struct Page {
  report::JsonObject about;  // everything but the table; "kind" says which views there are
  Table table;
};

// The whole file.
std::string page_text(const Page& page);

// Writes it as `path`, in place of an earlier page; of anything else that is there it keeps off.
// Returns the path.
Result<std::string> write_page(const std::string& path, const Page& page);

// The page without data: src/page/page.html.
std::string_view empty_page();

}  // namespace ait::page
