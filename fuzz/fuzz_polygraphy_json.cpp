#include "formats/polygraphy_json.h"
#include "fuzz/reader_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return ait::fuzz::read_as_file(ait::formats::polygraphy_json::open, data, size);
}
