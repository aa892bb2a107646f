// An operation that computes: one or more kernels, run one after another.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "atb/operation.h"

namespace atb {

// What a kernel was told about blocking, as bytes: its "tiling data".
class Tiling {
 public:
  Tiling() = default;
  template <class T>
    requires std::is_trivially_copyable_v<T>
  explicit Tiling(const T& value) : bytes_(sizeof value) {
    std::memcpy(bytes_.data(), &value, sizeof value);
  }
  template <class T>
  T as() const {
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// A tensor of the operation as one of its kernels sees it.
struct Operand {
  enum class Kind : uint8_t { kIn, kOut, kScratch };
  Kind kind;
  uint32_t index;
};

struct Kernel {
  std::string name;  // "MatMulF16Kernel"
  Tiling tiling;
  // Empty: all tensors of the operation.
  std::vector<Operand> in, out;
};

class AIT_ATB_API KernelOperation : public Operation {
 public:
  using Operation::Operation;

 protected:
  struct KernelPlan {
    std::vector<Kernel> kernels;
    std::vector<TensorDesc> scratch;  // between the kernels
  };
  // Chooses kernels and their tiling for these shapes, which InferShape has accepted.
  virtual Status plan(const std::vector<TensorDesc>& in, const std::vector<TensorDesc>& out,
                      KernelPlan& plan) const = 0;
  virtual Status launch(size_t kernel, std::span<const Tensor> in, std::span<const Tensor> out,
                        const Tiling& tiling) const = 0;
  // Whether results are elements of the inputs as they are, so that no rounding can happen.
  virtual bool only_moves() const { return false; }
  void forget_plan() override { planned_ = asked_ = false; }

 private:
  Status prepare(const VariantPack& pack, uint64_t& workspace_bytes, Context& context) override;
  void fill_tiling() override;
  Status run(const VariantPack& pack, uint8_t* workspace, Context& context) override;
  uint64_t perturbation_seed() const;
  Status check_overflow(const Kernel& kernel, std::span<const Tensor> out) const;
  void report_kernel(std::span<const Tensor> in, std::span<const Tensor> out,
                     const std::string& folder) const;

  KernelPlan plan_;
  std::vector<TensorDesc> planned_in_;
  bool planned_ = false;
  bool asked_ = false;  // whether the kernels' tensors are wanted, for these parameters
  std::vector<uint8_t> kernel_wanted_;
  std::vector<uint64_t> scratch_offsets_;
};

// "MatMul" and float16 make "MatMulF16Kernel".
std::string kernel_name(const std::string& base, DataType dtype);

}  // namespace atb
