// The environment that a command will find.
//
//   Environment environment = Environment::of_this_process();
//   environment.set("ATB_OUTPUT_DIR", "/out/");
//   environment.remove("ATB_EXIT");
//   run_child(program, words, environment);
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ait::launch {

class Environment {
 public:
  Environment() = default;
  static Environment of_this_process();

  Environment& set(std::string_view name, std::string_view value);
  Environment& remove(std::string_view name);
  std::optional<std::string> get(std::string_view name) const;

  // For exec: ends with a null pointer and lives as long as this is not changed.
  std::vector<char*> pointers() const;

 private:
  std::vector<std::string> entries_;  // "NAME=value"
};

}  // namespace ait::launch
