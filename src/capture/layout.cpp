#include "capture/layout.h"

#include <array>
#include <utility>

#include "capture/atb_dump.h"
#include "capture/checkpoint.h"
#include "capture/fx_tree.h"
#include "capture/ge_tree.h"
#include "capture/msprobe_dump.h"
#include "capture/plain_folder.h"
#include "capture/polygraphy_results.h"
#include "capture/sglang_dump.h"
#include "capture/torch_dump.h"
#include "capture/transformers_debug.h"

namespace ait::capture {
namespace {

template <auto read>
Result<Run> read_as_run(const std::string& path) {
  auto run = read(path);
  if (!run) return fail(run.error());
  return Run(std::move(*run));
}

constexpr std::array kLayouts = {
    Layout{"manual mapping", RunKind::kMapping, false, is_manual_mapping,
           read_as_run<read_manual_mapping>},
    Layout{"torch dump", RunKind::kOperations, true, is_torch_dump, read_as_run<read_torch_dump>},
    Layout{"msprobe dump", RunKind::kOperations, true, is_msprobe_dump,
           read_as_run<read_msprobe_dump>},
    Layout{"transformers' debugger", RunKind::kOperations, true, is_transformers_debug,
           read_as_run<read_transformers_debug>},
    Layout{"SGLang dump", RunKind::kOperations, false, is_sglang_dump,
           read_as_run<read_sglang_dump>},
    Layout{"acceleration library's dump", RunKind::kOperations, false, is_atb_dump,
           read_as_run<read_atb_dump>},
    Layout{"FX dump", RunKind::kOperations, true, is_fx_tree, read_as_run<read_fx_tree>},
    Layout{"GE dump", RunKind::kOperations, false, is_ge_tree, read_as_run<read_ge_tree>},
    Layout{"Polygraphy results", RunKind::kOperations, true, is_polygraphy_results,
           read_as_run<read_polygraphy_run>},
    Layout{"Polygraphy results", RunKind::kWeights, false, is_polygraphy_results,
           read_as_run<read_polygraphy_results>},
    Layout{"checkpoint", RunKind::kWeights, false, is_checkpoint, read_as_run<read_checkpoint>},
    Layout{"folder", RunKind::kFiles, false, is_plain_folder, read_as_run<read_plain_folder>},
};

}  // namespace

std::span<const Layout> layouts() { return kLayouts; }

const Layout* find_layout(const std::string& path, RunKind kind, Role role,
                          std::span<const Layout> among) {
  const Layout* second_choice = nullptr;
  for (const Layout& layout : among) {
    if (layout.kind != kind || !layout.recognises(path)) continue;
    if (layout.usually_golden == (role == Role::kGolden)) return &layout;
    if (second_choice == nullptr) second_choice = &layout;
  }
  return second_choice;
}

}  // namespace ait::capture
