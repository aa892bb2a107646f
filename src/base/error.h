// How every part of ait says that something went wrong.
//
//   Result<std::string> read_magic(const std::string& path) {
//     auto file = MappedFile::open(path);
//     if (!file) return fail(file.error());  // passed on as it is
//     const auto bytes = (*file)->bytes();
//     if (bytes.size() < 6)
//       return fail(Error(ErrorCode::kCorrupt, path, bytes.size())
//                   << "6 bytes were expected; the file was probably cut short");
//     return std::string(reinterpret_cast<const char*>(bytes.data()), 6);
//   }
//
// error().text() is then "x.npy: 6 bytes were expected; the file was probably cut short (at byte
// 4)". tests/base/example_test.cpp runs this example.
//
// Everything that reads outside data returns Result. A message is one sentence: what is wrong, what
// was expected, and what to do. Exceptions are left to bad_alloc and the standard library.
//
// This is the main header of `base`. The others: mapped_file.h and text_file.h (reading files),
// output_file.h and folders.h (writing them), checked.h (sizes from outside), parallel.h (loops on
// several threads), log.h (messages to a person).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>

namespace ait {

// A caller tells failures apart by these; python/bindings/errors.cpp gives each its exception
// class.
enum class ErrorCode : uint8_t {
  kNotFound,     // the path does not exist
  kUnreadable,   // it exists but cannot be opened, read or mapped; a folder where a file is meant
  kUnwritable,   // a result cannot be stored: full disk, read-only folder
  kCorrupt,      // the content breaks its own format
  kUnsupported,  // well-formed, but a variant or type that ait does not handle
  kRefused,      // content that would run code if obeyed
  kUsage,        // the caller asked for something that makes no sense
  kInterrupted,  // stopped by the user
};

class Error {
 public:
  static constexpr uint64_t kNoOffset = ~uint64_t{0};

  explicit Error(ErrorCode code, std::string path = {}, uint64_t offset_bytes = kNoOffset)
      : code_(code), path_(std::move(path)), offset_bytes_(offset_bytes) {}

  ErrorCode code() const { return code_; }
  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }
  uint64_t offset_bytes() const { return offset_bytes_; }

  // For code that sees only bytes: its caller names the file they came from.
  Error& set_path(std::string path) {
    path_ = std::move(path);
    return *this;
  }

  // "path: message (at byte N)", on one line, control characters made visible.
  std::string text() const;

  Error& operator<<(std::string_view words) & {
    message_ += words;
    return *this;
  }
  template <typename T>
    requires std::is_integral_v<T>
  Error& operator<<(T value) & {
    message_ += std::to_string(value);
    return *this;
  }
  template <typename T>
  Error&& operator<<(const T& value) && {
    static_cast<Error&>(*this) << value;
    return std::move(*this);
  }

 private:
  ErrorCode code_;
  std::string path_;
  std::string message_;
  uint64_t offset_bytes_;
};

template <typename T>
using Result = tl::expected<T, Error>;

// What a function that returns a Result returns on failure: an Error alone does not become one.
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

// What errno says, as words: "No space left on device".
std::string system_message(int error_number);

// That a result could not be stored, by what record's WriteStatus says of it: "cannot write the
// file: No space left on device".
Error unwritable(std::string path, std::string_view step, int error_number);

// Text of outside origin made fit for one line of a terminal: control bytes become \xNN, and text
// longer than `max_bytes` is cut.
std::string printable(std::string_view text, size_t max_bytes = 200);

}  // namespace ait
