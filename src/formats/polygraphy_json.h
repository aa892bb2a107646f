// Polygraphy's JSON: what its runners put out (RunResults.save, polygraphy run --save-outputs), or
// what they were given (--save-inputs).
//
//     {"lst": [["onnxrt-runner", [{"outputs": {"logits": {"values": {"array": "k05VTVB…"}}}}, …]]]}
//     [{"input_ids": {"array": "k05VTVB…"}}, …]
//
// An array is the base64 text of what np.save or, under "tensor", torch.save would write. A tensor
// goes by iteration and name, "0/logits", with its runner before that where there are several.
// docs/formats/polygraphy_json.md has the details.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/registry.h"

namespace ait::formats::polygraphy_json {

// What simdjson can look into.
inline constexpr size_t kMaxBytes = size_t{3} << 30;

bool sniff(std::span<const std::byte> bytes);
Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file);

}  // namespace ait::formats::polygraphy_json
