// Lines of a statistics.csv (docs/formats/statistics_csv.md). Internal to this library.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/registry.h"

namespace ait::convert {

inline constexpr std::string_view kTableHeader =
    "NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File\r\n";

// `tensor` is "input_0", "output"; without statistics their cells are empty.
std::string table_line(const std::string& operation, const std::string& type,
                       const std::string& tensor, DType dtype, const Shape& shape,
                       const std::optional<formats::Description::Statistics>& statistics);

}  // namespace ait::convert
