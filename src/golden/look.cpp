#include "golden/look.h"

#include "base/checked.h"

namespace ait::golden {

Result<Array> read_look(Task& task, const Tensor& tensor, const Look& look) {
  const auto elements = count_elements(look.shape);
  if (!elements)
    return fail(task.contradiction("a tensor of shape " + shape_text(look.shape) +
                                   " cannot be: it is too large"));
  // Once as they are stored and once as doubles.
  if (auto room = task.make_room(*elements, 2); !room) return fail(room.error());
  TensorView view = tensor.view();
  view.shape = look.shape;
  view.strides = look.strides;
  view.elements = *elements;
  if (*elements > 0) view.data += look.offset * static_cast<int64_t>(size_bytes(tensor.dtype()));
  return read_array(view);
}

Result<Array> read_strided(Task& task, std::string_view name, const Look& look) {
  const auto x = in_row_major_order(task.tensor(name));
  if (!x) return fail(x.error());
  if (look.shape.size() != look.strides.size())
    return fail(task.contradiction("a view of size " + shape_text(look.shape) +
                                   " has the strides " + shape_text(look.strides)));
  const auto elements = count_elements(look.shape);
  // The last element that is seen, or nothing where it is not even a number.
  std::optional<uint64_t> last;
  if (look.offset >= 0) last = static_cast<uint64_t>(look.offset);
  for (size_t i = 0; i < look.shape.size() && elements && *elements > 0 && last; ++i) {
    std::optional<uint64_t> step;
    if (look.strides[i] >= 0)
      step = checked_mul(static_cast<uint64_t>(look.shape[i] - 1),
                         static_cast<uint64_t>(look.strides[i]));
    last = step ? checked_add(*last, *step) : std::nullopt;
  }
  if (!elements || (*elements > 0 && (!last || *last >= x->elements())))
    return fail(task.contradiction(
        "a view of size " + shape_text(look.shape) + " and strides " + shape_text(look.strides) +
        " from " + std::to_string(look.offset) + " on leaves the " + std::to_string(x->elements()) +
        " elements of " + std::string(name)));
  return read_look(task, *x, look);
}

}  // namespace ait::golden
