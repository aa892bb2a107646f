#include "cli/page_file.h"

#include <fstream>
#include <iterator>

#include "page/results.h"
#include "report/utf8.h"
#include "summary/pairing.h"

namespace ait::cli {
namespace {

// What this program was called with, as a person can type it again.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', at), bytes.size());
    out += (out.empty() ? "" : " ") + report::shell_word(bytes.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

void add_origin(page::ComparisonFacts& facts) {
  facts.version = AIT_VERSION;
  facts.command = command_line();
}

std::string comparison_note(const match::PairList& list, const std::string& noise) {
  report::JsonObject note;
  note.set("tool", "ait llm compare")
      .set("version", AIT_VERSION)
      .set("made", page::now_text())
      .set("command", command_line())
      .set("noise", noise);
  if (list.automatic) {
    note.set("recordings", summary::completeness_json(list));
    note.set("pairing", summary::coverage_json(*list.automatic));
  }
  return report::Json(std::move(note)).text();
}

std::string page_line(const std::string& path) {
  return "Page: " + report::visible(path) + " (open it in a browser)\n";
}

}  // namespace ait::cli
