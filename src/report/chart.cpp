#include "report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "report/table.h"

namespace ait::report {

std::string bar(double fraction, size_t width) {
  static constexpr std::array<std::string_view, 8> kEighths = {"",  "▏", "▎", "▍",
                                                               "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return {};
  const double columns = std::min(fraction, 1.0) * static_cast<double>(width);
  const auto eighths = std::max<size_t>(1, static_cast<size_t>(std::lround(columns * 8)));
  std::string out;
  for (size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out += kEighths[eighths % 8];
}

std::string sparkline(std::span<const double> values, size_t width) {
  static constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄",
                                                              "▅", "▆", "▇", "█"};
  const size_t blocks = std::min(values.size(), width);
  std::string out;
  for (size_t i = 0; i < blocks; ++i) {
    const auto part = values.subspan(i * values.size() / blocks,
                                     (i + 1) * values.size() / blocks - i * values.size() / blocks);
    const double value = *std::max_element(part.begin(), part.end());
    out += value < 0 ? " " : kBlocks[std::min<size_t>(7, static_cast<size_t>(value * 8))];
  }
  return out;
}

std::string histogram_chart(std::span<const size_t> counts, double minimum, double maximum,
                            size_t width) {
  if (counts.empty()) return {};
  const size_t most = *std::max_element(counts.begin(), counts.end());
  Table table({{"from", Align::kRight}, {"", Align::kLeft}, {"count", Align::kRight}});
  for (size_t i = 0; i < counts.size(); ++i) {
    // Weighted ends rather than a step: a range wider than the largest double would overflow.
    const double share = static_cast<double>(i) / static_cast<double>(counts.size());
    const double edge = minimum * (1 - share) + maximum * share;
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.4g", edge);
    const double fraction =
        most == 0 ? 0 : static_cast<double>(counts[i]) / static_cast<double>(most);
    table.add({text.data(), bar(fraction, width), std::to_string(counts[i])});
  }
  return table.text(false);
}

}  // namespace ait::report
