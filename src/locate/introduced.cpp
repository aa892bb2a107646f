#include "locate/introduced.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <vector>

#include "opcheck/check.h"

namespace ait::locate {
namespace {

// {3, 1} of "3_Layer/1_Linear"; nothing where a part has no number.
std::vector<uint64_t> ids_of(const std::string& operation) {
  std::vector<uint64_t> ids;
  for (size_t at = 0; at < operation.size();) {
    uint64_t id = 0;
    const char* const end = operation.data() + operation.size();
    const auto [stop, error] = std::from_chars(operation.data() + at, end, id);
    if (error != std::errc() || stop == end || *stop != '_') return {};
    ids.push_back(id);
    at = operation.find('/', at);
    if (at != std::string::npos) ++at;
  }
  return ids;
}

}  // namespace

std::optional<Introduced> introduced_error(const capture::TensorRecord& record,
                                           const std::string& operation) {
  // "…/ait_dump/tensors/0_4711/0/3_Layer/1_Linear/after/outtensor0.bin"
  const size_t at = record.path.rfind("/" + record.operation + "/");
  if (at == std::string::npos) return std::nullopt;
  const std::vector<uint64_t> ids = ids_of(operation);
  if (ids.empty()) return std::nullopt;
  const auto found = opcheck::find_cases({.folder = record.path.substr(0, at), .ids = {ids}});
  if (!found) return std::nullopt;
  std::optional<Introduced> out;
  const std::atomic<bool> stop = false;
  opcheck::check_cases(found->cases, {}, stop, [&](std::vector<opcheck::CheckRow>&& rows) {
    for (const opcheck::CheckRow& row : rows)
      if (row.of_bound) out = Introduced{std::max(*row.of_bound, out ? out->of_bound : 0)};
  });
  return out;
}

}  // namespace ait::locate
