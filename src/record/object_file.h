// A JSON object in a file that grows by members and is whole after each of them.
//
//   ObjectFile file;
//   if (auto status = file.create("forward_info_4711.json"); !status.ok()) return status.step;
//   const char member[] = "\"Torch*cat*0\": {\"args\": []}";
//   if (auto status = file.add(member, sizeof member - 1); !status.ok()) return status.step;
//
// A member is one write that begins where the closing brace was and ends with the next one: whoever
// reads the file between two members, or after the process has died between them, finds a document.
// Only a process that is killed inside the write itself can leave the last member without its end;
// readers then have all others, each on lines of its own.
//
// Not to be used by several threads at once, nor by a forked child.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "record/atomic_file.h"

namespace ait::record {

class ObjectFile {
 public:
  ObjectFile() = default;
  ~ObjectFile();
  ObjectFile(const ObjectFile&) = delete;
  ObjectFile& operator=(const ObjectFile&) = delete;

  // Makes the file (0640, parents 0750) with an object without members. EEXIST where the name is
  // taken.
  WriteStatus create(const char* path);

  // `member` is a key, a colon and a value. Where the disk has no room for it, the file is as it
  // was before.
  WriteStatus add(const void* member, size_t bytes);

 private:
  int fd_ = -1;
  off_t end_ = 0;  // of the last member, or of the opening brace
  bool empty_ = true;
};

}  // namespace ait::record
