// What the words mean that people give to the options of a check. kUsage for others, in a sentence
// that names the option.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "opcheck/row.h"

namespace ait::opcheck {

// -ids: {"24_1", "2_3_5"}
Result<std::vector<std::vector<uint64_t>>> parse_id_list(const std::vector<std::string>& items);

// -metric: {"kl", "cos_sim"}
Result<Metrics> parse_metrics(const std::vector<std::string>& words);

// --memory: GiB as bytes; 0 where nothing was given.
Result<size_t> parse_memory(std::string_view text);

// -device: a number, which no golden needs.
Result<int> parse_device(std::string_view text);

}  // namespace ait::opcheck
