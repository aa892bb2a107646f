#include "golden/whole.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace ait::golden {

Result<std::vector<int64_t>> whole_numbers(const Task& task, std::string_view name) {
  if (!task.has(name)) return std::vector<int64_t>{};
  if (!is_integer(task.dtype(name)))
    return fail(task.contradiction(std::string(name) + " is of type " +
                                   std::string(ait::name(task.dtype(name))) +
                                   ", not of whole numbers"));
  constexpr double kLargest = 0x1p53;
  const Array array = task.values(name);
  std::vector<int64_t> numbers;
  numbers.reserve(array.elements());
  for (const double value : array.data) {
    if (std::abs(value) > kLargest)
      return fail(task.contradiction(std::string(name) + " has an element beyond 2^53"));
    numbers.push_back(static_cast<int64_t>(value));
  }
  return numbers;
}

Result<std::vector<size_t>> indices(const Task& task, std::string_view name, size_t end) {
  const auto numbers = whole_numbers(task, name);
  if (!numbers) return fail(numbers.error());
  std::vector<size_t> out;
  out.reserve(numbers->size());
  for (const int64_t number : *numbers) {
    if (number < 0 || static_cast<size_t>(number) >= end)
      return fail(task.contradiction(std::string(name) + " has the element " +
                                     std::to_string(number) + ", which is not between 0 and " +
                                     std::to_string(end) + " (exclusive)"));
    out.push_back(static_cast<size_t>(number));
  }
  return out;
}

Result<std::vector<size_t>> ends(const Task& task, std::string_view name, size_t limit) {
  auto out = indices(task, name, limit + 1);
  if (!out) return out;
  const auto falls = std::adjacent_find(out->begin(), out->end(), std::greater<>());
  if (falls != out->end())
    return fail(task.contradiction(std::string(name) + " falls from " + std::to_string(*falls) +
                                   " to " + std::to_string(*(falls + 1))));
  return out;
}

Result<std::vector<size_t>> lengths(const Task& task, std::string_view name) {
  const auto numbers = whole_numbers(task, name);
  if (!numbers) return fail(numbers.error());
  std::vector<size_t> out;
  out.reserve(numbers->size());
  for (const int64_t number : *numbers) {
    if (number < 0)
      return fail(task.contradiction(std::string(name) + " has the negative element " +
                                     std::to_string(number)));
    out.push_back(static_cast<size_t>(number));
  }
  return out;
}

Result<std::vector<size_t>> lengths(const Task& task, std::string_view name, size_t most,
                                    std::string_view what, bool exactly) {
  auto out = lengths(task, name);
  if (!out) return out;
  size_t left = most;
  bool fits = true;
  for (const size_t length : *out) {
    fits = fits && length <= left;
    left -= fits ? length : 0;
  }
  if (!fits || (exactly && left != 0))
    return fail(task.contradiction("the elements of " + std::string(name) +
                                   " do not add up to the " + std::to_string(most) + " " +
                                   std::string(what)));
  return out;
}

Result<size_t> axis_of(const Task& task, std::string_view key, int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank)
    return fail(task.contradiction(std::string(key) + " names the dimension " +
                                   std::to_string(axis) + ", and there are " +
                                   std::to_string(rank)));
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace ait::golden
