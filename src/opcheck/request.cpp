#include "opcheck/request.h"

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

// "24_1"
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

Result<Precision> parse_precision(std::string_view word) {
  if (word.empty() || word == "keep_origin_dtype") return Precision::kAsRecorded;
  if (word == "force_fp16") return Precision::kFloat16;
  if (word == "force_fp32") return Precision::kFloat32;
  return fail(Error(ErrorCode::kUsage) << "-pmode does not know '" << printable(word)
                                       << "', give keep_origin_dtype, force_fp16 or force_fp32");
}

// GiB as bytes; 0 where nothing was given.
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

std::vector<std::string> repeated(const Words& words) {
  std::vector<std::string> out;
  if (!words.search.table.empty()) out.insert(out.end(), {"-c", words.search.table});
  if (!words.precision.empty()) out.insert(out.end(), {"-pmode", words.precision});
  if (words.rerun) out.emplace_back("-rerun");
  if (!words.plugin.empty()) out.insert(out.end(), {"--rerun-plugin", words.plugin});
  return out;
}

}  // namespace

Result<Request> understand(const Words& words) {
  Request out;
  auto ids = parse_id_list(words.ids);
  if (!ids) return fail(ids.error());
  const auto metrics = parse_metrics(words.metrics);
  if (!metrics) return fail(metrics.error());
  const auto precision = parse_precision(words.precision);
  if (!precision) return fail(precision.error());
  const auto memory = parse_memory(words.memory);
  if (!memory) return fail(memory.error());
  const auto device = parse_device(words.device);
  if (!device) return fail(device.error());
  auto fail_on = parse_fail_on(words.fail_on);
  if (!fail_on) return fail(fail_on.error());
  if (!words.rerun && !words.plugin.empty())
    return fail(Error(ErrorCode::kUsage) << "--rerun-plugin is for -rerun: give that, too");
  out.search = words.search;
  out.search.ids = std::move(*ids);
  out.search.needs_outputs = !words.rerun;
  out.options.metrics = *metrics;
  out.options.precision = *precision;
  out.options.threads = words.threads;
  out.options.memory_bytes = *memory;
  out.rerun = words.rerun;
  out.library.plugin = words.plugin;
  out.library.device = *device;
  out.library.limit = std::chrono::seconds(words.rerun_seconds);
  out.library.memory_bytes = *memory;
  out.fail_on = std::move(*fail_on);
  out.again = repeated(words);
  return out;
}

}  // namespace ait::opcheck
