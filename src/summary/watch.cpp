#include "summary/watch.h"

#include <fmt/format.h>

#include "dump/texts.h"
#include "report/json.h"
#include "report/number.h"
#include "report/table.h"
#include "report/utf8.h"

namespace ait::summary {
namespace {

using report::Cell;
using report::Json;
using report::JsonArray;
using report::JsonObject;
using report::number_text;
using watch::Departure;
using watch::FollowedFolder;
using watch::Follower;
using watch::FollowOptions;

std::string state_words(const FollowedFolder& folder) {
  if (folder.state == "recording") return "still recording";
  if (folder.state == "gone") return "its process ended without a word";
  if (folder.state.empty()) return "has no manifest";
  return "ended, " + folder.state;
}

JsonObject departure_object(const Departure& departure) {
  JsonObject out;
  return out.set("folder", departure.folder)
      .set("round", departure.round)
      .set("module", departure.module)
      .set("tensor", departure.tensor)
      .set("condition", departure.condition)
      .set("statistic", departure.statistic)
      .set("value", departure.value)
      .set("usual", departure.usual ? Json(*departure.usual) : Json(Cell()));
}

Json departure_json(const std::optional<Departure>& departure) {
  return departure ? Json(departure_object(*departure)) : Json(Cell());
}

std::string where_text(const Departure& departure) {
  return fmt::format("round {}, {} of {}", departure.round, report::visible(departure.tensor),
                     report::visible(departure.module));
}

}  // namespace

std::string departure_text(const Departure& departure) {
  std::string what;
  if (departure.from_golden && departure.statistic == "distance")
    what = fmt::format("leaves golden, it is at least {:.3g} away", departure.value);
  else if (departure.from_golden)
    what = fmt::format("leaves golden, {} is {} and {} there", departure.statistic,
                       number_text(departure.value), number_text(departure.usual.value_or(0)));
  else if (departure.usual)
    what = fmt::format("{}, {} is {} where {} is usual", departure.condition, departure.statistic,
                       number_text(departure.value), number_text(*departure.usual));
  else
    what = fmt::format("{}, {} is {}", departure.condition, departure.statistic,
                       number_text(departure.value));
  return fmt::format("{}: {}", where_text(departure), what);
}

std::string watch_text(const Follower& follower, const FollowOptions& options) {
  report::Table table({{}, {}});
  for (const FollowedFolder& folder : follower.folders())
    table.add({report::visible(folder.name),
               fmt::format("{} read{}, {}", dump::count_text(folder.rounds, "round"),
                           folder.last_round ? fmt::format(" up to {}", *folder.last_round) : "",
                           state_words(folder))});
  table.add({"tensors", fmt::format("{} with statistics", follower.tensors())});
  if (!options.golden.empty())
    table.add({"golden", fmt::format("{} compared with it", follower.compared())});
  std::string out = "\n" + table.text(false);
  if (const auto& first = follower.first_of_history())
    out += "First to leave its history: " + departure_text(*first) + ".\n";
  else
    out += "Nothing left its history.\n";
  if (const auto& first = follower.first_of_golden())
    out += "First to leave golden: " + departure_text(*first) + ".\n";
  else if (!options.golden.empty() && follower.compared() == 0)
    out += "Nothing could be compared with golden: no module of a round has the same name there.\n";
  else if (!options.golden.empty())
    out += "Nothing left golden, as far as statistics can tell.\n";
  if (!options.golden.empty())
    out += fmt::format("Next: ait llm compare -gp {} -mp {}\n", dump::shell_word(options.golden),
                       dump::shell_word(options.path));
  return out;
}

std::string watch_json(const Follower& follower, const FollowOptions& options) {
  JsonArray folders;
  for (const FollowedFolder& folder : follower.folders()) {
    JsonObject object;
    object.set("name", folder.name)
        .set("state", folder.state)
        .set("rounds", folder.rounds)
        .set("last_round", folder.last_round ? Json(*folder.last_round) : Json(Cell()));
    folders.emplace_back(std::move(object));
  }
  JsonObject root;
  root.set("path", options.path)
      .set("golden", options.golden.empty() ? Json(Cell()) : Json(options.golden))
      .set("ended", follower.has_ended())
      .set("folders", std::move(folders))
      .set("tensors", follower.tensors())
      .set("compared", follower.compared())
      .set("departures", follower.departures())
      .set("first_of_history", departure_json(follower.first_of_history()))
      .set("first_of_golden", departure_json(follower.first_of_golden()));
  return Json(std::move(root)).text() + "\n";
}

}  // namespace ait::summary
