// The names a pickle may mention. Each is only ever noted down, never looked up or called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/pickle.h"

namespace ait::formats::pickle {

std::optional<uint8_t> find_global(std::string_view module, std::string_view name);
const Global& global_at(uint8_t index);

}  // namespace ait::formats::pickle
