// What register_hook keeps of the tensors of one round, or of one module of it, where statistics were
// asked for, and `ait llm convert` of an operation: a line each, no data. Its predecessors write the
// same without the columns after L2Norm, and append.
//
//     NodeName,NodeType,InputOutput,Index,DataType,Shape,Max,Min,Mean,L2Norm,File,NaN,Inf,SameAs
//     root.norm,LlamaRMSNorm,Output,0,torch.float16,"(1, 7, 64)",1.5,-1.25,0.01,3.2,root.norm/output,0,0,
//
// The columns after the tenth are found by their names. Lines end in "\r\n" or "\n"; cells are quoted
// where they hold a comma. A tensor goes by the name in File, or else by "input_{Index}",
// "output_{Index}", and "output" where that is the only one. load() fails with a message that begins
// "tensor has no data."; an empty tensor, whose numbers are empty, needs none and loads.
// docs/formats/statistics_csv.md has the details.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::statistics_csv {

// A round of the largest models has some 100 000 tensors, of some 150 bytes each, and with a sketch of 4
// KiB. Opening keeps the names alone, numbers are read where they are asked for.
inline constexpr size_t kMaxBytes = size_t{1} << 30;
inline constexpr size_t kMaxTensors = 1'000'000;

bool sniff(std::span<const std::byte> bytes);

// A line that makes no sense is left out and counted in the note; one that does is needed, though.
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::statistics_csv
