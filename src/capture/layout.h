// The layouts that ait knows: how each tool leaves its runs on disk. The content decides.
//
//   const Layout* layout = find_layout(path, RunKind::kOperations, Role::kGolden);
//   if (layout == nullptr) return not_a_dump(path);         // no tool's dump
//   auto run = layout->read(path);
//   if (!run) return fail(run.error());
//   const auto& recording = std::get<Recording>(*run);
//   for (const Operation& operation : recording.operations) names.push_back(operation.name);
//
// tests/capture/example_test.cpp runs this example.
//
// A new layout is one file pair beside this one and one line in layout.cpp. Nothing else asks which
// tool wrote a run: what pairing needs to know of it stands in Recording::traits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "capture/capture.h"
#include "capture/manual_mapping.h"
#include "capture/recording.h"

namespace ait::capture {

// What a run consists of. Runs of one kind can be compared with each other; where a path can be
// seen as several kinds the first of these is meant.
enum class RunKind : uint8_t {
  kMapping,     // a person named the pairs: ManualMapping
  kOperations,  // operations of a model in rounds and ranks: Recording
  kWeights,     // tensors by name: Capture
  kFiles,       // any files, by their place in the folder: Capture
};

using Run = std::variant<ManualMapping, Recording, Capture>;

// Which side of a comparison a path was given for.
enum class Role : uint8_t { kGolden, kActual };

struct Layout {
  std::string_view name;  // "torch dump"
  RunKind kind;
  // A folder may hold dumps of two tools. What this one recorded is then the trusted run.
  bool usually_golden = false;
  bool (*recognises)(const std::string& path);
  Result<Run> (*read)(const std::string& path);
};

// Every layout of the product, the more particular ones first.
std::span<const Layout> layouts();

// The layout of this kind that recognises a path; nullptr where none does. Of several, the usual
// one for its role.
const Layout* find_layout(const std::string& path, RunKind kind, Role role,
                          std::span<const Layout> among = layouts());

}  // namespace ait::capture
