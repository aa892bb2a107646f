// How the ranks of one machine exchange tensors: shared memory that they inherit.
//
//   auto communicator = Communicator::create(2);
//   const pid_t child = fork();
//   communicator->join(child == 0 ? 1 : 0);
//   context.set_communicator(communicator.get());
//
// Every rank must make the same calls in the same order. A rank that dies does not leave the others
// waiting: they are told by fail(), or find out through the check given to set_peer_check, and
// their call fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "atb/types.h"

namespace atb {

class AIT_ATB_API Communicator {
 public:
  enum class Reduction : uint8_t { kSum, kMax, kMin, kProd };

  // Null when there is no memory. Call it before the processes part.
  static std::unique_ptr<Communicator> create(size_t ranks);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void join(size_t rank) { rank_ = rank; }
  size_t rank() const { return rank_; }
  size_t size() const { return ranks_; }

  // Asked now and then while waiting: whether all peers still live.
  void set_peer_check(std::function<bool()> check) { peers_live_ = std::move(check); }
  // Ends all waiting, here and elsewhere. Whether this rank is the first to fail: the others fail
  // because of it, and need not say so again.
  bool fail();

  // out = reduction over the ranks' x, in rank order, floating types only.
  Status all_reduce(const Tensor& x, const Tensor& out, Reduction reduction);
  // out = [ranks, …x], in rank order.
  Status all_gather(const Tensor& x, const Tensor& out);

 private:
  struct Header;
  Communicator(void* memory, size_t ranks);

  uint8_t* slot(size_t rank) const;
  Status barrier();

  void* memory_;
  size_t ranks_;
  size_t rank_ = 0;
  std::function<bool()> peers_live_;
};

}  // namespace atb
