// Options that several commands have, each in its usual words.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/option_set.h"

namespace ait::cli {

// --exec, which must be given, under a heading of its own.
void add_exec(OptionSet& set, std::string& exec);

// Its words. kUsage, naming --exec.
Result<std::vector<std::string>> understand_exec(const std::string& exec);

// The elements of a list that was typed with commas, the documents' own wide ones too, blanks or
// both: "2, 3_1" and "2 3_1" are the same. Two commas in a row have an empty element between them.
std::vector<std::string> list_elements(const std::vector<std::string>& words);
// The same without empty ones.
std::vector<std::string> list_items(const std::vector<std::string>& words);

// --json, under the heading that is current.
void add_json(OptionSet& set, bool& json);

// -l, which every command has, among the last options.
void add_log_level(OptionSet& set, std::string& level);

// --threads, among the last options.
void add_threads(OptionSet& set, size_t& threads);

}  // namespace ait::cli
