#include "fuzz/folder_index_fuzzer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return ait::fuzz::read_as_folder_index(data, size);
}
