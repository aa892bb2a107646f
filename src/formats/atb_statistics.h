// statistic.csv of msprobe's probe for the acceleration library: a line for each tensor of a round,
// beside its data or in their place.
//
//     Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape,Max,Min,Mean,Norm,Tensor Path
//     0_4711,0,Layer/Linear,Linear,13_6,output,0,float16,nd,2x64,1.5,-1.25,0.01,3.2,N/A
//
// A tensor goes by the name that its file has in the round's folder, without the extension:
// "13_Layer/6_Linear/after/outtensor0". load() fails with a message that begins "tensor has no data."
// docs/formats/atb_statistics.md has the details.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::atb_statistics {

inline constexpr size_t kMaxBytes = size_t{256} << 20;

bool sniff(std::span<const std::byte> bytes);

// A line that makes no sense is left out and counted in the note; one that does is needed, though.
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::atb_statistics
