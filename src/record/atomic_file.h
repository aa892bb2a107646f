// Files that appear whole or not at all.
//
//   iovec parts[] = {{header, header_bytes}, {data, data_bytes}};
//   if (auto status = write_file("dump/0_1/out.bin", parts, 2); !status.ok())
//     printf("cannot %s: %s", status.step, strerror(status.error_number));
//
// prints "cannot write the file: No space left on device".
//
// The bytes go to a temporary name in the same folder and are renamed when complete, so that a
// reader, a crash or a full disk never meets half a file. Safe to call from several threads and
// processes at once: the last one to rename wins.
#pragma once

#include <sys/uio.h>

#include <cstddef>

namespace ait::record {

// What went wrong and during which step: words that follow "cannot …".
struct [[nodiscard]] WriteStatus {
  int error_number = 0;  // as errno; 0 when all went well
  const char* step = "";
  bool replaced = false;  // what was there under the file's name is gone
  bool linked = false;    // a file with the same bytes has got a further name (repeat_file.h)

  bool ok() const { return error_number == 0; }
};

struct WriteOptions {
  // Wait until the disk has the bytes before renaming. Off: a dump need not outlive a power cut,
  // and waiting costs more than writing.
  bool sync = false;
};

// Creates missing parent folders (0750), writes the parts in order (file 0640), renames. An
// existing regular file is replaced; anything else at `path` (a folder, a device) is left alone and
// is an error. On failure the temporary file is removed; folders that were made stay.
WriteStatus write_file(const char* path, const iovec* parts, size_t count,
                       const WriteOptions& options = {});

// The same, of what there is to read from `fd` up to its end.
WriteStatus write_copy(const char* path, int fd);

// open() for names that others may have got at: it waits for nobody, follows no link in the last
// name, opens nothing but regular files (EINVAL, EISDIR for a folder), and never takes the number of
// a standard stream that the host has closed: what is printed would end up in our file. A new file
// has mode 0640. -1 and errno on failure.
int open_regular_file(const char* path, int flags);

// Makes every missing folder above the last slash of `path` (0750).
WriteStatus create_parents(const char* path);

// A file that grows by whole lines, for tables: each line is one write, so that lines of several
// threads and processes do not mix. Creates parents and file where missing; the file can be read, too.
// -1 and errno on failure, as open_regular_file; open_failure() puts that into words.
int open_for_lines(const char* path);
WriteStatus open_failure();
WriteStatus append_line(int fd, const void* bytes, size_t count);

}  // namespace ait::record
