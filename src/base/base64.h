// Bytes as text, as RFC 4648 has it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ait {

std::string to_base64(std::string_view bytes);

// Nothing where the text is not whole groups of four digits, the last of which may end in "=".
std::optional<std::string> from_base64(std::string_view text);

// The same for who has the room: how many bytes there are, if the length of the text makes sense, and
// whether they could be put there.
std::optional<size_t> base64_bytes(std::string_view text);
bool from_base64(std::string_view text, std::span<std::byte> out);

}  // namespace ait
