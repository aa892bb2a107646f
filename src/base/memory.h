// The memory of the machine and of this process.
#pragma once

#include <cstddef>

namespace ait {

// All that the machine has.
size_t machine_memory_bytes();

// Keeps up to half a gibibyte that was freed. To give such memory back to the system and take it
// again, cleared page by page, costs a program that takes and frees megabytes all the time a fifth
// of it. For the whole process and from now on, so it is the program's to call.
void keep_freed_memory();

}  // namespace ait
