#include "base/node_paths.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace ait {
namespace {

std::vector<std::string>& nodes_in_use() {
  static std::vector<std::string> nodes;
  return nodes;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Error not_brought(const std::string& path, int error_number) {
  if (error_number == ENOENT || error_number == ENOTDIR || error_number == EISDIR)
    return Error(ErrorCode::kNotFound, path) << "no such file; check the path";
  return Error(ErrorCode::kUnreadable, path)
         << "cannot be opened for reading: " << system_message(error_number);
}

// Sends all of it, and gives the line that is answered; empty where nobody does.
std::string asked(const std::string& socket_path, const std::string& question) {
  sockaddr_un address{};
  if (socket_path.size() >= sizeof address.sun_path) return {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const int file = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0) return {};
  std::string answer;
  if (::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    std::string_view rest = question;
    while (!rest.empty()) {
      const ssize_t sent = ::send(file, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) break;
      rest.remove_prefix(static_cast<size_t>(sent));
    }
    char buffer[512];
    while (rest.empty() && !answer.ends_with('\n')) {
      const ssize_t got = ::recv(file, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      answer.append(buffer, static_cast<size_t>(got));
    }
  }
  ::close(file);
  return answer;
}

}  // namespace

void use_node_paths(std::vector<std::string> nodes) { nodes_in_use() = std::move(nodes); }

bool has_node_paths() { return !nodes_in_use().empty(); }

std::optional<NodeFile> node_file(const std::string& path) {
  if (nodes_in_use().empty()) return std::nullopt;
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  if (length <= 0 || static_cast<size_t>(length) == sizeof target) return std::nullopt;
  const char* end = target + length;
  NodeFile out;
  const auto read = std::from_chars(target, end, out.bytes);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != ' ') return std::nullopt;
  out.path.assign(read.ptr + 1, end);
  return out;
}

std::string link_text(const NodeFile& file) { return std::to_string(file.bytes) + " " + file.path; }

Result<std::string> local_path(const std::string& path) {
  const std::vector<std::string>& nodes = nodes_in_use();
  if (nodes.empty()) return path;
  if (const auto listed = node_file(path)) return local_path(listed->path);
  const size_t colon = path.find(":/");
  if (colon == std::string::npos) return path;
  const std::string node = path.substr(0, colon);
  if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) return path;
  std::string there = path.substr(colon + 1);
  if (variable("AIT_NODE") == node) return there;
  struct stat status{};
  if (const std::string files = variable("AIT_NODE_FILES"); !files.empty()) {
    std::string copy = files;
    copy += "/" + node + there;
    if (::stat(copy.c_str(), &status) == 0) return copy;
    char said[16] = {};
    if (::readlink(copy.c_str(), said, sizeof said - 1) > 1 && said[0] == ' ')
      return fail(not_brought(path, std::atoi(said + 1)));
  }
  const std::string socket_path = variable("AIT_NODE_SOCKET");
  if (socket_path.empty()) return there;
  std::string answer = asked(socket_path, path + "\n");
  if (answer.size() < 2 || !answer.ends_with('\n'))
    return fail(Error(ErrorCode::kUnreadable, path) << "cannot be brought from its node");
  answer.pop_back();
  if (answer.front() != ' ') return answer;
  return fail(not_brought(path, std::atoi(answer.c_str() + 1)));
}

}  // namespace ait
