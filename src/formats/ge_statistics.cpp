#include "formats/ge_statistics.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "formats/little_endian.h"
#include "formats/npz.h"

namespace ait::formats::ge_statistics {
namespace {

constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kNameLengthAt = 26;
constexpr std::string_view kFirstMember = "inputs.npy";
constexpr int64_t kColumns = 2;
constexpr int64_t kMaxRows = 100'000;  // no dump has more tensors

// Rows in row-major order, or nothing where it is another kind of array.
std::optional<Tensor> rows_of(const TensorFile& file, size_t index) {
  const auto array = file.load(index);
  if (!array) return std::nullopt;
  const Shape& shape = array->shape();
  const bool is_empty = shape == Shape{0};
  if (!is_empty && (shape.size() != 2 || shape[1] != kColumns || shape[0] > kMaxRows))
    return std::nullopt;
  auto ordered = in_row_major_order(*array);
  if (!ordered) return std::nullopt;
  return std::move(*ordered);
}

class Rows : public TensorFile {
 public:
  Rows(Tensor inputs, Tensor outputs)
      : arrays_{std::move(inputs), std::move(outputs)}, inputs_(rows(arrays_[0])) {}

  std::string_view format() const override { return "GE statistics"; }
  size_t size() const override { return inputs_ + rows(arrays_[1]); }
  std::string name(size_t index) const override {
    return index < inputs_ ? "input_" + std::to_string(index)
                           : "output_" + std::to_string(index - inputs_);
  }
  Result<Tensor> load(size_t index) const override {
    const Tensor& array = arrays_[index < inputs_ ? 0 : 1];
    const size_t row = index < inputs_ ? index : index - inputs_;
    const TensorView view = array.view();
    const size_t bytes = kColumns * size_bytes(array.dtype());
    return Tensor::contiguous(array.owner(), {view.data + row * bytes, bytes}, array.dtype(),
                              {kColumns});
  }
  std::string note() const override {
    return "it holds the smallest and the largest value of each tensor in place of the data";
  }

 private:
  static size_t rows(const Tensor& array) { return array.elements() / kColumns; }

  Tensor arrays_[2];
  size_t inputs_;
};

}  // namespace

bool sniff(std::span<const std::byte> bytes) {
  if (!npz::sniff(bytes) || bytes.size() < kLocalHeaderBytes) return false;
  const size_t length = read_le<uint16_t>(bytes, kNameLengthAt);
  if (!range_fits(kLocalHeaderBytes, length, bytes.size())) return false;
  const auto name = bytes.subspan(kLocalHeaderBytes, length);
  return std::string_view(reinterpret_cast<const char*>(name.data()), length) == kFirstMember;
}

Result<std::unique_ptr<TensorFile>> open(std::shared_ptr<const MappedFile> file) {
  auto arrays = npz::open(std::move(file));
  if (!arrays) return arrays;
  const TensorFile& both = **arrays;
  if (both.size() != 2 || both.name(0) != "inputs" || both.name(1) != "outputs") return arrays;
  auto inputs = rows_of(both, 0);
  auto outputs = rows_of(both, 1);
  if (!inputs || !outputs) return arrays;
  return std::make_unique<Rows>(std::move(*inputs), std::move(*outputs));
}

}  // namespace ait::formats::ge_statistics
