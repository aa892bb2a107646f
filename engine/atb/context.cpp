#include "atb/context.h"

#include "atb/probe.h"

namespace atb {

Context::Context(int device) : device_(device) {
  if (Probe::IsOverflowCheck()) overflow_status_ = std::make_unique<int32_t>(0);
}

Context::~Context() {
  if (Probe::IsOverflowCheck()) overflow_status_.reset();
}

}  // namespace atb
