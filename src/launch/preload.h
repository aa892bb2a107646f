// The library that is put in front of all others in every process of a command.
//
//   auto probe = find_probe(kAtbProbe);
//   environment.set("LD_PRELOAD", preload_value(*probe, environment.get("LD_PRELOAD")));
#pragma once

#include <optional>
#include <string>

#include "base/error.h"

namespace ait::launch {

inline constexpr const char* kAtbProbe = "libatb_probe.so";

// The absolute path of `../lib/ait/{name}` seen from this program's own folder. kNotFound where the
// installation lacks it; kRefused where group or others may write it, since it would run with the
// user's rights; kUnsupported where its path holds a blank or a colon, which end a name in
// LD_PRELOAD.
Result<std::string> find_probe(const std::string& name);

// The same rules for a file at a known path.
Result<void> check_probe(const std::string& path);

// What was preloaded already stays, behind the probe.
std::string preload_value(const std::string& probe, const std::optional<std::string>& previous);

}  // namespace ait::launch
