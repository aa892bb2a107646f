#include "golden/task.h"

#include <algorithm>
#include <cmath>

#include "golden/product.h"
#include "golden/rounding.h"
#include "metrics/elements.h"

namespace ait::golden {
namespace {

bool is_real(DType dtype) {
  const DTypeKind kind = info(dtype).kind;
  return kind == DTypeKind::kInteger || kind == DTypeKind::kFloat;
}

// The name that takes() is given begins with the marks of the input.
constexpr std::string_view kMarks = "?~";
std::string_view bare(std::string_view name) {
  return name.substr(std::min(name.find_first_not_of(kMarks), name.size()));
}

}  // namespace

Result<void> Task::takes(const std::vector<std::string_view>& names) {
  names_.clear();
  for (const std::string_view name : names) names_.push_back(bare(name));
  for (size_t i = 0; i < names.size(); ++i) {
    const Given* given = find(names_[i]);
    const std::string_view marks = names[i].substr(0, names[i].size() - names_[i].size());
    if (given == nullptr && marks.find('?') != std::string_view::npos) continue;
    if (given == nullptr)
      return fail(contradiction("input " + std::to_string(i) + " (" + std::string(names_[i]) +
                                ") was not recorded"));
    if (!is_real(given->tensor.dtype()))
      return fail(no_golden("input " + std::to_string(i) + " is of type " +
                            std::string(name(given->tensor.dtype()))));
    if (marks.find('~') != std::string_view::npos) continue;
    if (auto room = make_room(given->tensor.elements()); !room) return room;
  }
  return {};
}

Result<void> Task::takes_of_rank(size_t rank, const std::vector<std::string_view>& names) {
  if (rank >= operation_.ranks.size())
    return fail(contradiction("Cannot find data on rank " + std::to_string(rank) + "! " +
                              std::string(operation_.type) + " needs tensors on all devices!"));
  inputs_ = &operation_.ranks[rank];
  return takes(names);
}

const Given* Task::find(std::string_view name) const {
  const auto place = std::find(names_.begin(), names_.end(), name);
  const auto index = static_cast<size_t>(place - names_.begin());
  if (place == names_.end() || index >= inputs_->size()) return nullptr;
  const auto& given = (*inputs_)[index];
  return given && given->tensor.elements() > 0 ? &*given : nullptr;
}

const Shape& Task::shape(std::string_view name) const {
  static const Shape none = {0};
  const Given* given = find(name);
  return given == nullptr ? none : given->tensor.shape();
}

Array Task::values(std::string_view name) const {
  const Given* given = find(name);
  return given == nullptr ? Array{{0}, {}} : read_array(looked_at(*given).view());
}

const Tensor& Task::tensor(std::string_view name) const { return looked_at(*find(name)); }

const Tensor& Task::looked_at(const Given& given) const {
  for (size_t i = 0; i < read_.size(); ++i)
    if (operation_.inputs[i] && &*operation_.inputs[i] == &given) read_[i] = true;
  return given.tensor;
}

void Task::read(std::string_view name, size_t first, size_t count, double* out) const {
  metrics::read_elements(looked_at(*find(name)).view(), first, count, out);
}

void Task::read(std::string_view name, size_t first, size_t count, std::vector<double>& out) const {
  metrics::read_elements(looked_at(*find(name)).view(), first, count, out);
}

size_t Task::input_count() const {
  size_t count = inputs_->size();
  while (count > 0 && !(*inputs_)[count - 1]) --count;
  return count;
}

const Recorded* Task::recorded(size_t output) const {
  return output < operation_.outputs.size() ? &operation_.outputs[output] : nullptr;
}

DType Task::output_type(size_t output, DType otherwise) const {
  const Recorded* found = recorded(output);
  return found == nullptr ? otherwise : found->dtype;
}

void Task::multiply(const Matrix& a, const Matrix& b, double* out,
                    std::vector<double>* column_norms) const {
  if (!limits_.reference_loops) return golden::multiply(a, b, out, 0, column_norms);
  multiply_plainly(a, b, out);
  if (column_norms != nullptr) *column_norms = fourth_norms(transposed(b));
}

Result<void> Task::make_room(size_t elements, size_t copies) {
  const size_t limit = limits_.memory_bytes / sizeof(double);
  if (elements > limit / copies || doubles_ > limit - elements * copies) {
    constexpr double kPerMebibyte = sizeof(double) / 0x1p20;
    const double needed =
        static_cast<double>(elements) * static_cast<double>(copies) + static_cast<double>(doubles_);
    return fail(Error(ErrorCode::kUsage)
                << operation_.type << ": the golden needs at least "
                << static_cast<uint64_t>(std::ceil(needed * kPerMebibyte)) << " MiB, more than the "
                << limits_.memory_bytes / (size_t{1} << 20)
                << " MiB that it may take; give it more memory");
  }
  doubles_ += elements * copies;
  return {};
}

void Task::note(std::string text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end())
    notes_.push_back(std::move(text));
}

Result<Expected> Task::give(std::vector<Output> outputs) {
  Expected expected{std::move(outputs), {}, std::move(notes_)};
  for (size_t i = 0; i < read_.size(); ++i)
    if (read_[i]) expected.read_inputs.push_back(i);
  return expected;
}

Result<Expected> Task::give(Output output) {
  std::vector<Output> outputs;
  outputs.push_back(std::move(output));
  return give(std::move(outputs));
}

Error Task::no_golden(std::string_view what) const {
  return Error(ErrorCode::kUnsupported) << operation_.type << ": " << what << ": no golden";
}

Error Task::contradiction(std::string_view what) const {
  return Error(ErrorCode::kCorrupt) << operation_.type << ": " << what;
}

double sum_slack(size_t length, double magnitudes) {
  return kMargin * kFloat32Unit * std::sqrt(static_cast<double>(length)) * magnitudes;
}

Output exact_output(Shape shape, std::vector<double> values) {
  Output out;
  out.shape = std::move(shape);
  out.values = std::move(values);
  return out;
}

Output function_output(Shape shape, std::vector<double> values,
                       const std::vector<double>& magnitudes) {
  Output out = exact_output(std::move(shape), std::move(values));
  constexpr double kUnit = kMargin * kFunctionUnits * kFloat32Unit;
  out.slack.resize(out.values.size());
  for (size_t i = 0; i < out.slack.size(); ++i) out.slack[i] = kUnit * std::abs(out.values[i]);
  for (size_t i = 0; i < std::min(out.slack.size(), magnitudes.size()); ++i)
    out.slack[i] = std::max(out.slack[i], kUnit * std::abs(magnitudes[i]));
  return out;
}

}  // namespace ait::golden
