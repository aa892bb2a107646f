#include "fuzz/capture_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return ait::fuzz::read_as_msprobe_dump(data, size);
}
