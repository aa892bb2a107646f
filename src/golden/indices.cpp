#include "golden/indices.h"

#include <cmath>

namespace ait::golden {

Result<std::vector<size_t>> read_indices(const Task& task, std::string_view name, size_t limit) {
  const Array given = task.values(name);
  std::vector<size_t> indices;
  indices.reserve(given.elements());
  for (const double number : given.data) {
    if (!(number >= 0 && number < static_cast<double>(limit) && number == std::floor(number)))
      return fail(task.contradiction(std::string(name) + " holds " + std::to_string(number) +
                                     ", but goes from 0 to " + std::to_string(limit) + " - 1"));
    indices.push_back(static_cast<size_t>(number));
  }
  return indices;
}

Result<std::vector<size_t>> read_ends(const Task& task, std::string_view name, size_t limit) {
  auto ends = read_indices(task, name, limit + 1);
  if (!ends) return ends;
  for (size_t i = 1; i < ends->size(); ++i)
    if ((*ends)[i] < (*ends)[i - 1])
      return fail(task.contradiction(std::string(name) + " falls from " +
                                     std::to_string((*ends)[i - 1]) + " to " +
                                     std::to_string((*ends)[i])));
  return ends;
}

}  // namespace ait::golden
