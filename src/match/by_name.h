// Pairs records whose operations have the same name: files at the same place below two folders,
// weights of two checkpoints.
#pragma once

#include <vector>

#include "capture/capture.h"
#include "match/pair.h"

namespace ait::match {

// Every record of either side is in exactly one pair; those without a partner stand alone. Names
// that differ only in their file extension ("a/x.pth", "a/x.bin") belong together where that is
// unambiguous. In golden's order, what only the other side has in its place by name; the subject of
// a pair is that name.
std::vector<Pair> pair_by_name(const capture::Capture& golden, const capture::Capture& actual);

// Gives my weights the scale ("x.weight_scale") and the offset ("x.weight_offset") that lie beside
// them, where golden has no such scale itself; these then are no pairs of their own. Returns how
// many weights have one.
size_t add_scales(std::vector<Pair>& pairs);

}  // namespace ait::match
