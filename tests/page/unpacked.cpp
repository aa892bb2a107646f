#include "unpacked.h"

#include <libdeflate.h>

namespace ait::page {
namespace {

std::string bytes_of_base64(const std::string& text) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

std::string inflated(const std::string& packed) {
  std::string out(1 << 24, '\0');
  size_t size = 0;
  libdeflate_decompressor* decompressor = libdeflate_alloc_decompressor();
  const auto result = libdeflate_gzip_decompress(decompressor, packed.data(), packed.size(),
                                                 out.data(), out.size(), &size);
  libdeflate_free_decompressor(decompressor);
  out.resize(result == LIBDEFLATE_SUCCESS ? size : 0);
  return out;
}

}  // namespace

std::map<std::string, std::string> parts_of(const std::string& page) {
  std::map<std::string, std::string> out;
  const std::string start = "<script type=\"text/plain\" id=\"ait-";
  for (size_t at = page.find(start); at != std::string::npos; at = page.find(start, at)) {
    at += start.size();
    const size_t name_end = page.find("\">", at);
    const size_t end = page.find("</script>", name_end);
    out[page.substr(at, name_end - at)] =
        inflated(bytes_of_base64(page.substr(name_end + 2, end - name_end - 2)));
    at = end;
  }
  return out;
}

nlohmann::json about_of(const std::string& page) {
  return nlohmann::json::parse(parts_of(page).at("about"));
}

}  // namespace ait::page
