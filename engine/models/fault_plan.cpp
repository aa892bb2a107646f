#include "models/fault_plan.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

namespace atb_speed {
namespace {

using ait::Error;
using ait::ErrorCode;
using ait::fail;
using ait::Result;

// Beyond every model's positions, and exact as a float.
constexpr float kLargestShift = 1e6f;

struct KindRow {
  FaultKind kind;
  std::string_view name;
  bool kernel;
  std::string_view op;  // default
  float size;           // default; 0: takes none
  std::string_view what;
};
constexpr std::array<KindRow, 8> kKinds{{
    {FaultKind::kEpsilon, "epsilon", true, "RmsNorm", 0.01f,
     "a norm adds `size` in place of its epsilon"},
    {FaultKind::kOverflow, "overflow", true, "Linear", 1e6f,
     "the result passes through fp16 scaled up by `size`; what exceeds 65504 becomes Inf"},
    {FaultKind::kRow, "row", true, "Linear", 0.5f,
     "the last row of the result is off by `size` times its root mean square"},
    {FaultKind::kScale, "scale", true, "Linear", 0.1f, "the result is 1 + `size` times too large"},
    {FaultKind::kRopePairing, "rope-pairing", false, "Rope", 0,
     "rotary embedding turns neighbours instead of halves"},
    {FaultKind::kResidual, "residual", false, "Elewise", 0,
     "the residual is not added: index 0 around attention, 1 around the mlp"},
    {FaultKind::kHeadMapping, "head-mapping", false, "Linear", 0,
     "every key head stands where its neighbour belongs"},
    {FaultKind::kPosition, "position", false, "Rope", 1,
     "the layer embeds positions that are off by `size`"},
}};

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Error wrong(const std::string& text, const std::string& what) {
  return Error(ErrorCode::kUsage) << "fault \"" << ait::printable(text) << "\" " << what;
}

// Applies one "key=value"; what is wrong with it, or nothing.
std::string set(Fault& fault, const KindRow& row, std::string_view key, std::string_view value) {
  if (key == "layer")
    return parse_number(value, fault.layer) && fault.layer >= 0 ? "" : "needs a layer number";
  if (key == "index")
    return parse_number(value, fault.index) && fault.index >= 0 ? "" : "needs an index from 0 on";
  if (key == "rank") {
    int64_t rank = 0;
    if (!parse_number(value, rank) || rank < 0) return "needs a rank number";
    fault.rank = rank;
    return "";
  }
  if (key == "round") {
    int64_t round = 0;
    if (value == "all") {
      fault.round.reset();
      return "";
    }
    if (!parse_number(value, round) || round < 0) return "needs a round number or all";
    fault.round = round;
    return "";
  }
  if (key == "size") {
    if (row.size == 0) return "takes no size";
    return parse_number(value, fault.size) && fault.size == fault.size ? ""
                                                                       : "needs a number as size";
  }
  if (key == "op") {
    if (!row.kernel) return fmt::format("always concerns {}; leave out op", row.op);
    if (value.ends_with("Operation")) value.remove_suffix(std::string_view("Operation").size());
    fault.op = value;
    return fault.op.empty() ? "needs an operation type as op" : "";
  }
  return fmt::format(
      "has an unknown part \"{}\"; the parts are layer, op, index, round, rank "
      "and size",
      ait::printable(std::string(key)));
}

}  // namespace

std::optional<atb::KernelFault> Fault::kernel() const {
  switch (kind) {
    case FaultKind::kEpsilon:
      return atb::KernelFault{atb::KernelFault::Kind::kEpsilon, size};
    case FaultKind::kOverflow:
      return atb::KernelFault{atb::KernelFault::Kind::kOverflow, size};
    case FaultKind::kRow:
      return atb::KernelFault{atb::KernelFault::Kind::kRow, size};
    case FaultKind::kScale:
      return atb::KernelFault{atb::KernelFault::Kind::kScale, size};
    default:
      return std::nullopt;
  }
}

Result<Fault> parse_fault(const std::string& text) {
  const size_t at = text.find('@');
  const std::string_view all(text);
  const std::string_view name = all.substr(0, at);
  for (const KindRow& row : kKinds) {
    if (row.name != name) continue;
    Fault fault;
    fault.kind = row.kind;
    fault.op = row.op;
    fault.size = row.size;
    std::string_view rest = at == std::string::npos ? std::string_view() : all.substr(at + 1);
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string_view part = rest.substr(0, comma);
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos)
        return fail(wrong(text, "is not of the form KIND@key=value,key=value"));
      if (auto problem = set(fault, row, part.substr(0, equals), part.substr(equals + 1));
          !problem.empty())
        return fail(wrong(text, problem));
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    if (fault.kind == FaultKind::kPosition &&
        (std::fabs(fault.size) > kLargestShift || fault.size != std::floor(fault.size)))
      return fail(wrong(text, "needs a whole number of positions as size"));
    if (fault.kind == FaultKind::kEpsilon && !fault.op.ends_with("Norm"))
      return fail(wrong(text, "needs a norm as op: only norms have an epsilon"));
    return fault;
  }
  return fail(wrong(text, "is of no known kind; see --list-faults"));
}

std::string fault_list() {
  std::string list;
  for (const KindRow& row : kKinds) {
    list +=
        fmt::format("{:<13} {:<7} {}; op={}{}\n", row.name, row.kernel ? "kernel" : "wiring",
                    row.what, row.op, row.size == 0 ? "" : fmt::format(", size={:g}", row.size));
  }
  return list;
}

}  // namespace atb_speed
