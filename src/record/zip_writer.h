// Zip archives of stored members, for the encoders of torch files and of .npz. Internal to this
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "record/crc32.h"
#include "record/file_image.h"

namespace ait::record {

// Stored members only, sizes known beforehand; zip64 fields appear where a value needs them.
class ZipWriter {
 public:
  explicit ZipWriter(FileImage& file) : file_(file) {}

  // A member of two parts: the first is copied, the second, a tensor's data, referred to.
  void add(const char* name, const void* start, size_t start_bytes, const void* data = nullptr,
           size_t data_bytes = 0) {
    const uint64_t header_offset = file_.size_bytes();
    const size_t bytes = start_bytes + data_bytes;
    const uint32_t checksum = crc32(data, data_bytes, crc32(start, start_bytes));
    const bool large = bytes >= kMax32;
    const uint32_t size32 = large ? kMax32 : static_cast<uint32_t>(bytes);
    const auto name_bytes = static_cast<uint16_t>(std::strlen(name));

    const size_t zip64_bytes = large ? kFieldHeaderBytes + 16 : 0;
    const uint64_t unpadded =
        header_offset + kLocalHeaderBytes + name_bytes + zip64_bytes + kFieldHeaderBytes;
    const auto padding =
        static_cast<uint16_t>((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment);
    const auto extra_bytes = static_cast<uint16_t>(zip64_bytes + kFieldHeaderBytes + padding);

    ByteBuffer header;
    header.add("PK\x03\x04", 4);
    add_common_fields(header, large ? kVersionZip64 : kVersionPlain, checksum, size32, name_bytes,
                      extra_bytes);
    header.add(name, name_bytes);
    if (large) {
      header.add_little_endian(kZip64Field);
      header.add_little_endian(uint16_t{16});
      header.add_little_endian(uint64_t{bytes});
      header.add_little_endian(uint64_t{bytes});
    }
    header.add_little_endian(kPaddingField);
    header.add_little_endian(padding);
    header.add_repeated('Z', padding);
    out_of_memory_ = out_of_memory_ || header.out_of_memory();
    file_.add_copy(header);
    if (start_bytes > 0) file_.add_copy(start, start_bytes);
    if (data_bytes > 0) file_.add_reference(data, data_bytes);
    add_to_directory(name, name_bytes, checksum, bytes, header_offset);
  }

  void finish() {
    const uint64_t directory_offset = file_.size_bytes();
    const uint64_t directory_bytes = directory_.size();
    file_.add_copy(directory_);
    const bool large =
        members_ >= kMax16 || directory_offset >= kMax32 || directory_bytes >= kMax32;
    ByteBuffer end;
    if (large) {
      const uint64_t record_offset = file_.size_bytes();
      end.add("PK\x06\x06", 4);
      end.add_little_endian(uint64_t{44});  // bytes of this record that follow
      end.add_little_endian(kVersionZip64);
      end.add_little_endian(kVersionZip64);
      end.add_little_endian(uint64_t{0});  // disk numbers
      end.add_little_endian(members_);
      end.add_little_endian(members_);
      end.add_little_endian(directory_bytes);
      end.add_little_endian(directory_offset);
      end.add("PK\x06\x07", 4);
      end.add_little_endian(uint32_t{0});
      end.add_little_endian(record_offset);
      end.add_little_endian(uint32_t{1});
    }
    const auto count16 = members_ >= kMax16 ? kMax16 : static_cast<uint16_t>(members_);
    end.add("PK\x05\x06", 4);
    end.add_little_endian(uint32_t{0});
    end.add_little_endian(count16);
    end.add_little_endian(count16);
    end.add_little_endian(directory_bytes >= kMax32 ? kMax32
                                                    : static_cast<uint32_t>(directory_bytes));
    end.add_little_endian(directory_offset >= kMax32 ? kMax32
                                                     : static_cast<uint32_t>(directory_offset));
    end.add_little_endian(uint16_t{0});
    out_of_memory_ = out_of_memory_ || end.out_of_memory() || directory_.out_of_memory();
    file_.add_copy(end);
  }

  bool out_of_memory() const { return out_of_memory_ || file_.out_of_memory(); }

 private:
  static constexpr uint32_t kMax32 = 0xFFFFFFFF;
  static constexpr uint16_t kMax16 = 0xFFFF;
  // torch's, so that mapped storages suit any vector unit.
  static constexpr size_t kDataAlignment = 64;
  static constexpr uint16_t kPaddingField = 0x4246;  // "FB", the extra field torch pads with
  static constexpr uint16_t kZip64Field = 0x0001;
  static constexpr uint16_t kVersionPlain = 20;
  static constexpr uint16_t kVersionZip64 = 45;
  static constexpr uint16_t kDate = 0x0021;  // 1 January 1980: the same tensors give the same file
  static constexpr size_t kLocalHeaderBytes = 30;
  static constexpr size_t kFieldHeaderBytes = 4;

  static void add_common_fields(ByteBuffer& out, uint16_t version, uint32_t checksum, uint32_t size,
                                uint16_t name_bytes, uint16_t extra_bytes) {
    out.add_little_endian(version);
    out.add_little_endian(uint16_t{0});  // flags
    out.add_little_endian(uint16_t{0});  // stored
    out.add_little_endian(uint16_t{0});  // time
    out.add_little_endian(kDate);
    out.add_little_endian(checksum);
    out.add_little_endian(size);
    out.add_little_endian(size);
    out.add_little_endian(name_bytes);
    out.add_little_endian(extra_bytes);
  }

  void add_to_directory(const char* name, uint16_t name_bytes, uint32_t checksum, uint64_t bytes,
                        uint64_t header_offset) {
    const bool large_size = bytes >= kMax32;
    const bool large_offset = header_offset >= kMax32;
    const auto values_bytes = static_cast<uint16_t>((large_size ? 16 : 0) + (large_offset ? 8 : 0));
    const bool zip64 = values_bytes > 0;
    directory_.add("PK\x01\x02", 4);
    directory_.add_little_endian(zip64 ? kVersionZip64 : kVersionPlain);  // made by
    add_common_fields(directory_, zip64 ? kVersionZip64 : kVersionPlain, checksum,
                      large_size ? kMax32 : static_cast<uint32_t>(bytes), name_bytes,
                      static_cast<uint16_t>(zip64 ? kFieldHeaderBytes + values_bytes : 0));
    directory_.add_repeated('\0', 10);  // comment, disk, attributes
    directory_.add_little_endian(large_offset ? kMax32 : static_cast<uint32_t>(header_offset));
    directory_.add(name, name_bytes);
    if (zip64) {
      directory_.add_little_endian(kZip64Field);
      directory_.add_little_endian(values_bytes);
      if (large_size) {
        directory_.add_little_endian(bytes);
        directory_.add_little_endian(bytes);
      }
      if (large_offset) directory_.add_little_endian(header_offset);
    }
    ++members_;
  }

  FileImage& file_;
  ByteBuffer directory_;
  uint64_t members_ = 0;
  bool out_of_memory_ = false;
};

}  // namespace ait::record
