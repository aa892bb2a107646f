// A result file that exists whole or not at all.
//
//   auto file = OutputFile::create("out", "ait_cmp_report_20250102030405.csv");
//   if (!file) return fail(file.error());
//   if (auto ok = file->write(text); !ok) return fail(ok.error());
//   auto path = file->finish();  // that name in "out", or …_1.csv where it existed
//
// Written under a temporary name beside the target and renamed by finish(). Without finish()
// nothing is left behind: the destructor removes the temporary file, and so does
// remove_unfinished_files() after a signal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace ait {

class OutputFile {
 public:
  // Creates the folder (mode 0750, parents too) and the temporary file (0640). kUnwritable when it
  // cannot.
  static Result<OutputFile> create(const std::string& folder, const std::string& name);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Buffered. After a failure (kUnwritable, a full disk) the file can only be discarded.
  Result<void> write(std::string_view bytes);

  // Makes the file appear under its name, never over an existing one: a number goes before the
  // extension instead. `suffix` goes there too ("_partial"). Returns the path it got.
  Result<std::string> finish(std::string_view suffix = {});

  // Makes the file appear as `path` in the same folder, in place of whatever is there: for what
  // belongs to a file whose name was found free. Returns the path.
  Result<std::string> finish_as(const std::string& path);

 private:
  OutputFile(std::string folder, std::string name, std::string temporary, int descriptor,
             size_t slot);
  Result<void> flush();
  int close_synced();
  Result<std::string> renamed(const std::string& path, int error_number);
  void discard();

  std::string folder_;
  std::string name_;
  std::string temporary_;
  std::string buffer_;
  int descriptor_;  // -1 once finished or moved from
  size_t slot_;     // where remove_unfinished_files() finds it
};

// Unlinks the temporary files of every unfinished OutputFile of this process. Async-signal-safe,
// for a handler that ends the process right after.
void remove_unfinished_files() noexcept;

}  // namespace ait
