#include "base/error.h"

#include <array>
#include <system_error>

namespace ait {

std::string printable(std::string_view text, size_t max_bytes) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  if (text.size() > max_bytes) out += "…";
  return out;
}

std::string Error::text() const {
  static constexpr size_t kMaxPathBytes = 4096;
  static constexpr size_t kMaxMessageBytes = 2000;
  std::string out;
  if (!path_.empty()) out = printable(path_, kMaxPathBytes) + ": ";
  out += printable(message_, kMaxMessageBytes);
  if (offset_bytes_ != kNoOffset) out += " (at byte " + std::to_string(offset_bytes_) + ")";
  return out;
}

std::string system_message(int error_number) {
  return std::generic_category().message(error_number);
}

Error unwritable(std::string path, std::string_view step, int error_number) {
  return Error(ErrorCode::kUnwritable, std::move(path))
         << "cannot " << step << ": " << system_message(error_number);
}

}  // namespace ait
