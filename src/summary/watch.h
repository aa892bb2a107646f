// What `ait llm watch` has to say of a recording that it follows.
#pragma once

#include <string>

#include "watch/follow.h"

namespace ait::summary {

// One line, without its end: "round 12: output of root.fc: nan, max is nan".
std::string departure_text(const watch::Departure& departure);

std::string watch_text(const watch::Follower& follower, const watch::FollowOptions& options);
std::string watch_json(const watch::Follower& follower, const watch::FollowOptions& options);

}  // namespace ait::summary
