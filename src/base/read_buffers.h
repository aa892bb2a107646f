// Memory that whole files are read into, and that the next files use again. To read a file of the
// page cache into memory that is there takes half the time of mapping it: the pages of a mapping are
// found one by one, and threads that map and unmap wait for each other.
//
//   const ReadBuffers buffers;
//   auto file = MappedFile::open(path, &buffers);  // mapped where it is too large
#pragma once

#include <cstddef>
#include <memory>

namespace ait {

class ReadBuffers {
 public:
  static constexpr size_t kMostBytes = size_t{128} << 20;
  static constexpr size_t kMostOfAFile = size_t{8} << 20;

  // All buffers together are no larger than `most_bytes`.
  explicit ReadBuffers(size_t most_bytes = kMostBytes);

  // Goes back when nobody holds it any more, which may be after the ReadBuffers. Null where the file
  // is too large, or where what is left is too little.
  std::shared_ptr<std::byte[]> take(size_t bytes) const;

 private:
  class Pool;
  std::shared_ptr<Pool> pool_;
};

}  // namespace ait
