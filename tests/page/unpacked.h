// What a browser unpacks from a page.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace ait::page {

// The parts of a page by their names, as bytes.
std::map<std::string, std::string> parts_of(const std::string& page);

// The document about the report.
nlohmann::json about_of(const std::string& page);

}  // namespace ait::page
