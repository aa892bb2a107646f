#include "opcheck/words.h"

#include <charconv>

#include "opcheck/ids.h"

namespace ait::opcheck {
namespace {

constexpr double kMostGibibytes = 1e6;

template <typename T>
bool is_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, value);
  return bad == std::errc() && stop == end;
}

}  // namespace

Result<std::vector<std::vector<uint64_t>>> parse_id_list(const std::vector<std::string>& items) {
  std::vector<std::vector<uint64_t>> out;
  for (const std::string& item : items) {
    auto ids = parse_ids(item);
    if (!ids)
      return fail(Error(ErrorCode::kUsage) << "-ids does not understand '" << printable(item)
                                           << "', give ids as 24_1,2_3_5");
    out.push_back(std::move(*ids));
  }
  return out;
}

Result<Metrics> parse_metrics(const std::vector<std::string>& words) {
  Metrics out;
  for (const std::string& each : words) {
    if (each == "abs")
      out.absolute = true;
    else if (each == "cos_sim")
      out.cosine = true;
    else if (each == "kl")
      out.kl = true;
    else
      return fail(Error(ErrorCode::kUsage)
                  << "-metric does not know '" << printable(each) << "', give abs, cos_sim or kl");
  }
  return out;
}

Result<size_t> parse_memory(std::string_view text) {
  if (text.empty()) return size_t{0};
  double gibibytes = 0;
  if (!is_number(text, gibibytes) || !(gibibytes > 0) || gibibytes > kMostGibibytes)
    return fail(Error(ErrorCode::kUsage) << "--memory does not understand '" << printable(text)
                                         << "', give a number of GiB, as 8");
  return static_cast<size_t>(gibibytes * (size_t{1} << 30));
}

Result<int> parse_device(std::string_view text) {
  int device = 0;
  if (!text.empty() && (!is_number(text, device) || device < 0))
    return fail(Error(ErrorCode::kUsage) << printable(text) << " is an invalid int value");
  return device;
}

}  // namespace ait::opcheck
