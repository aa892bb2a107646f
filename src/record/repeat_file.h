// A file that is to hold what another one holds.
//
//   if (auto status = repeat_file("dump/0/up/output.pth", "dump/0/act/input_0.pth"); !status.ok())
//     printf("cannot %s: %s", status.step, strerror(status.error_number));
#pragma once

#include "record/atomic_file.h"

namespace ait::record {

// Gives the regular file `from` the further name `to`; where the file system has no links, no more of them for this
// file, or a file of that name already, `to` becomes a copy. Parents are made as by write_file.
WriteStatus repeat_file(const char* from, const char* to);

// Only as a link, of the file that is open as `fd` and was found at `from`: somebody may have put another one there
// since. 0 or an errno, and then nothing has changed.
int link_open_file(int fd, const char* from, const char* to);

}  // namespace ait::record
