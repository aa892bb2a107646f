// The options of one command, as the command declares them. What parses them stands behind this
// interface (command_line.cpp), so that no command includes the parser's header.
//
//   set.group("Output");
//   set.add_option("-o,--output", folder, "DIR", "folder for the report");
//   set.add_flag("--json", json, "print one JSON document instead of tables");
//
// Every value keeps what it holds where its option is not given, and must live until the command
// line has been parsed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ait::cli {

class OptionSet {
 public:
  virtual ~OptionSet() = default;

  // The heading in the help under which the options that follow stand.
  virtual void group(const std::string& heading) = 0;

  // `names` are "-o,--output"; `meta` stands for the value in the help: "DIR". A line end in `help`
  // is one there, too.
  virtual void add_option(const std::string& names, std::string& value, const std::string& meta,
                          const std::string& help) = 0;
  // The same, but it may stand without a value, and then means `bare`.
  virtual void add_optional(const std::string& names, std::string& value, const std::string& bare,
                            const std::string& meta, const std::string& help) = 0;
  virtual void add_required(const std::string& names, std::string& value, const std::string& meta,
                            const std::string& help) = 0;
  virtual void add_choice(const std::string& names, std::string& value,
                          const std::vector<std::string>& choices, const std::string& meta,
                          const std::string& help) = 0;
  virtual void add_number(const std::string& names, size_t& value, int first, int last,
                          const std::string& meta, const std::string& help) = 0;
  // One word or several: `-ids 2, 3_1`.
  virtual void add_list(const std::string& names, std::vector<std::string>& words,
                        const std::string& meta, const std::string& help) = 0;
  virtual void add_flag(const std::string& names, bool& value, const std::string& help) = 0;
  // A word without an option before it, which must be given.
  virtual void add_operand(const std::string& name, std::string& value,
                           const std::string& help) = 0;
  virtual void add_optional_operand(const std::string& name, std::string& value,
                                    const std::string& help) = 0;
};

}  // namespace ait::cli
