#include "page/page.h"

#include <libdeflate.h>

#include <filesystem>
#include <fstream>
#include <memory>

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

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + k]))
                                  : 0U;
    };
    const uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

void add(std::string& out, const Section& section) {
  out += "<script type=\"text/plain\" id=\"ait-" + section.id + "\">" +
         base64(compressed(section.bytes)) + "</script>\n";
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
