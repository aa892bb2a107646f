#include "formats/atb_statistics.h"
#include "fuzz/reader_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return ait::fuzz::read_as_file(ait::formats::atb_statistics::open, data, size);
}
