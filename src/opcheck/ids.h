// The numbers of an operation: its own, after those of the graphs that it is in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ait::opcheck {

// "3_1_0" is {3, 1, 0}; nothing where it is not of that form.
std::optional<std::vector<uint64_t>> parse_ids(std::string_view text);

// "3_1_0"
std::string ids_text(const std::vector<uint64_t>& ids);

}  // namespace ait::opcheck
