#include "launch/environment.h"

#include <unistd.h>

namespace ait::launch {
namespace {

bool names(const std::string& entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name);
}

}  // namespace

Environment Environment::of_this_process() {
  Environment out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    out.entries_.emplace_back(*entry);
  return out;
}

Environment& Environment::set(std::string_view name, std::string_view value) {
  remove(name);
  entries_.push_back(std::string(name).append("=").append(value));
  return *this;
}

Environment& Environment::remove(std::string_view name) {
  std::erase_if(entries_, [&](const std::string& entry) { return names(entry, name); });
  return *this;
}

std::optional<std::string> Environment::get(std::string_view name) const {
  for (const std::string& entry : entries_)
    if (names(entry, name)) return entry.substr(name.size() + 1);
  return std::nullopt;
}

std::vector<char*> Environment::pointers() const {
  std::vector<char*> out;
  out.reserve(entries_.size() + 1);
  for (const std::string& entry : entries_) out.push_back(const_cast<char*>(entry.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace ait::launch
