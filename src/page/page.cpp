#include "page/page.h"

#include <libdeflate.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/base64.h"
#include "base/log.h"
#include "base/output_file.h"

namespace ait::page {
namespace {

// What stands in the empty page where the data go, and how every page begins.
constexpr std::string_view kPlace = "<!--ait data-->";
constexpr std::string_view kBeginning = "<!doctype html><!--ait report-->";
constexpr int kCompression = 6;

std::string compressed(std::string_view bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kCompression), &libdeflate_free_compressor);
  if (!compressor) throw std::bad_alloc();
  std::string out(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), out.data(),
                                      out.size()));
  return out;
}

void add(std::string& out, const Section& section) {
  out += "<script type=\"text/plain\" id=\"ait-" + section.id + "\">" +
         to_base64(compressed(section.bytes)) + "</script>\n";
}

// A page that was written earlier may be replaced.
bool is_page(const std::string& path) {
  std::string start(kBeginning.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return file && start == kBeginning;
}

}  // namespace

std::string page_text(const Page& page) {
  std::vector<Section> sections;
  report::JsonObject table;
  table.set("rows", uint64_t{page.table.rows()}).set("columns", page.table.pack(sections));
  report::JsonObject about = page.about;
  about.set("table", std::move(table));

  const std::string_view empty = empty_page();
  const size_t place = empty.find(kPlace);
  std::string out(empty.substr(0, place));
  add(out, {"about", report::Json(std::move(about)).text()});
  for (Section& section : sections) {
    add(out, section);
    section.bytes.clear();
    section.bytes.shrink_to_fit();
  }
  out += empty.substr(place + kPlace.size());
  return out;
}

Result<std::string> write_page(const std::string& path, const Page& page) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  std::error_code ignored;
  if (fs::exists(target, ignored) && (!fs::is_regular_file(target, ignored) || !is_page(path)))
    return fail(Error(ErrorCode::kUsage, path)
                << "there is something else already; give the page another name");
  const std::string folder = target.has_parent_path() ? target.parent_path().native() : ".";
  auto file = OutputFile::create(folder, target.filename().native());
  if (!file) return fail(file.error());
  if (auto written = file->write(page_text(page)); !written) return fail(written.error());
  return file->finish_as(path);
}

}  // namespace ait::page
