// Inputs of readers that are led to a folder and look for names in it. The folder is in memory
// where the machine has such a place, and is emptied for every input.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ait::fuzz {

class InputFolder {
 public:
  InputFolder() {
    const char* parent = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string name = std::string(parent) + "/ait_fuzz_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  const std::string& path() const { return path_; }

  // The folder with this file alone; the file's path is returned.
  static std::string with(const std::string& name, const uint8_t* data, size_t size) {
    InputFolder& folder = only();
    folder.clear();
    return folder.write(name, {reinterpret_cast<const char*>(data), size});
  }

  // That of this process; it goes at its end.
  static InputFolder& only() {
    static InputFolder folder;
    return folder;
  }

  void clear() const {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored))
      std::filesystem::remove_all(entry.path(), ignored);
  }

  std::string write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::error_code ignored;
    std::filesystem::create_directories(file.parent_path(), ignored);
    std::ofstream(file, std::ios::binary)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return file;
  }

 private:
  std::string path_;
};

}  // namespace ait::fuzz
