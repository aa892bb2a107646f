// The document that stays with a dump: what was asked for, and what came of it (docs/dump.md).
#pragma once

#include <string>

#include "base/error.h"
#include "dump/outcome.h"

namespace ait::dump {

// One JSON document with a line end. Every path in it is relative to the dump's folder.
std::string manifest_text(const Outcome& outcome);

// Writes {dump}/manifest.json. One that is there already is kept as manifest_{its start}.json.
Result<void> write_manifest(const Outcome& outcome);

}  // namespace ait::dump
