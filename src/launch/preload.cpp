#include "launch/preload.h"

#include <sys/stat.h>

#include <filesystem>

namespace ait::launch {

namespace fs = std::filesystem;

Result<std::string> find_probe(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return fail(Error(ErrorCode::kNotFound, name)
                << "ait cannot find out where it is installed: " << error.message());
  std::string path = (program.parent_path().parent_path() / "lib" / "ait" / name).native();
  if (auto fit = check_probe(path); !fit) return fail(fit.error());
  return path;
}

Result<void> check_probe(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(Error(ErrorCode::kNotFound, path)
                << "the probe is not there, so that nothing can be recorded; install ait again or "
                   "run `make build`");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(
        Error(ErrorCode::kRefused, path)
        << "the probe can be changed by users other than its owner, and it would run with your "
           "rights; forbid that with chmod go-w");
  if (path.find_first_of(" \t\n:") != std::string::npos)
    return fail(Error(ErrorCode::kUnsupported, path)
                << "LD_PRELOAD cannot hold a path with a blank or a colon; install ait elsewhere");
  return {};
}

std::string preload_value(const std::string& probe, const std::optional<std::string>& previous) {
  return previous && !previous->empty() ? probe + ":" + *previous : probe;
}

}  // namespace ait::launch
