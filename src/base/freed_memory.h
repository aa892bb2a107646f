// For programs that take and free megabytes again and again.
#pragma once

namespace ait {

// Keeps up to half a gibibyte that was freed. To give such memory back to the system and take it
// again, cleared page by page, costs a program of this kind a fifth of its time. For the whole
// process and from now on, so it is the program's to call.
void keep_freed_memory();

}  // namespace ait
