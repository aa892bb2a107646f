// Which tensor of which file, as options say it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/registry.h"

namespace ait::cli {

struct TensorSource {
  std::string path;
  std::string name;                       // picks one of several; empty: the only one
  std::optional<formats::RawLayout> raw;  // the file is bare bytes
};

// "2,3", "2x3", "[2, 3]"; "[]" is a scalar. kUsage otherwise.
Result<Shape> parse_shape(std::string_view text);

// What --dtype and --shape say together; nothing when both are empty. kUsage for an unknown type
// and for a shape without a type. `option` names them in messages: "--golden-dtype".
Result<std::optional<formats::RawLayout>> parse_raw_layout(const std::string& dtype,
                                                           const std::string& shape,
                                                           std::string_view dtype_option);

// Loads the tensor; remarks about the file go to the log as warnings. `name_option` is what picks
// one of several, for the message that asks for it.
Result<Tensor> load(const TensorSource& source, std::string_view name_option);

}  // namespace ait::cli
