// What the operations of one device share while they run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "atb/types.h"

namespace atb {

class Communicator;

// Microseconds of one Setup or Execute and how often its caches helped; the text of a statistics
// report.
struct Statistic {
  uint64_t total_us = 0, create_us = 0, setup_us = 0, tiling_us = 0;
  uint64_t kernel_us = 0;
  uint64_t setup_hits = 0, setup_misses = 0, tiling_hits = 0, tiling_misses = 0;
};

// One device as one process sees it. Not for several threads at once.
class AIT_ATB_API Context {
 public:
  explicit Context(int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int device() const { return device_; }

  // For the collective operations; it must outlive the context. Without one they fail.
  void set_communicator(Communicator* communicator) { communicator_ = communicator; }
  Communicator* communicator() const { return communicator_; }

  // Noise on purpose: what every operation that computes returns is off by up to this share of
  // itself, the same in every run and on every rank. 0: none.
  void set_perturbation(float unit) { perturbation_ = unit; }
  float perturbation() const { return perturbation_; }

  // Set by a model while it runs: where in it the next operation stands, and in which round. Only
  // the saving by ACLTRANSFORMER_SAVE_TENSOR asks (save_tensor.h).
  struct ModelPlace {
    std::string folder;  // "0_LlamaPrefillModel"; empty outside of models
    size_t node = 0;
    uint64_t round = 0;
  };
  ModelPlace& place() { return place_; }
  const ModelPlace& place() const { return place_; }

  Statistic& statistic() { return statistic_; }

 private:
  int device_;
  Communicator* communicator_ = nullptr;
  float perturbation_ = 0;
  ModelPlace place_;
  Statistic statistic_;
  // ATB keeps the device's overflow status here while a probe asks for overflow checks; this
  // library looks at the results themselves, but asks at the same moments.
  std::unique_ptr<int32_t> overflow_status_;
};

}  // namespace atb
