#include <algorithm>
#include <array>
#include <cmath>

#include "golden/families.h"
#include "golden/golden.h"
#include "golden/rounding.h"

namespace ait::golden {
namespace {

using Golden = Result<Expected> (*)(Task&);
using Changed = std::vector<size_t> (*)(graph::AtbParam&);

struct Entry {
  std::string_view type;
  Golden golden;
  Changed changed = nullptr;  // the inputs that it writes to; none where it has no such function
};

std::vector<size_t> first_input(graph::AtbParam&) { return {0}; }

// A new operation is one line here.
constexpr auto kEntries = std::to_array<Entry>({
    {"ActivationOperation", activation},
    {"AsStridedOperation", as_strided},
    {"ConcatOperation", concat},
    {"DynamicNTKOperation", dynamic_ntk},
    {"ElewiseOperation", elewise},
    {"FillOperation", fill},
    {"GatherOperation", gather},
    {"LayerNormOperation", layer_norm},
    {"PadOperation", pad},
    {"RepeatOperation", repeat},
    {"RmsNormOperation", rms_norm},
    {"RopeOperation", rope},
    {"RopeQConcatOperation", rope_q_concat},
    {"SelfAttentionOperation", self_attention},
    {"SetValueOperation", set_value, first_input},
    {"SliceOperation", slice},
    {"SplitOperation", split},
    {"TransdataOperation", transdata},
    {"TransposeOperation", transpose},
    {"UnpadOperation", unpad},
    {"WhereOperation", where},
});

const Entry* find(std::string_view type) {
  const auto found = std::find_if(kEntries.begin(), kEntries.end(),
                                  [&](const Entry& entry) { return entry.type == type; });
  return found == kEntries.end() ? nullptr : &*found;
}

}  // namespace

Result<Expected> compute(const Operation& operation, const Limits& limits) {
  Task task(operation, limits);
  const Entry* entry = find(operation.type);
  if (entry == nullptr)
    return fail(Error(ErrorCode::kUnsupported)
                << printable(operation.type) << ": operation type not supported");
  auto expected = entry->golden(task);
  // A parameter that was not understood makes everything after it worthless.
  if (const auto read = task.param().finish(); !read)
    return fail(task.contradiction(read.error().message()));
  return expected;
}

bool knows(std::string_view type) { return find(type) != nullptr; }

std::vector<std::string_view> known_types() {
  std::vector<std::string_view> types;
  types.reserve(kEntries.size());
  for (const Entry& entry : kEntries) types.push_back(entry.type);
  return types;
}

std::vector<size_t> changed_inputs(std::string_view type, std::string_view param) {
  const Entry* entry = find(type);
  if (entry == nullptr || entry->changed == nullptr) return {};
  graph::AtbParam parsed(param);
  return entry->changed(parsed);
}

double bound(const Output& output, size_t index, DType dtype, size_t form) {
  if (output.slack.empty()) return 0;  // moved: the same number in the same type
  const double slack = output.slack[index];
  const double value = form == 0 ? output.values[index] : output.forms[form - 1].values[index];
  return slack + half_step(dtype, std::abs(value) + slack);
}

bool is_tied(const Output& output, size_t index, double result) {
  if (output.tie_of.empty() || output.tie_of[index] == Output::kNoTie) return false;
  const std::vector<double>& set = output.ties[output.tie_of[index]];
  return std::binary_search(set.begin(), set.end(), result);
}

}  // namespace ait::golden
