#include <charconv>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "cli/command.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "summary/watch.h"

namespace ait::cli {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);
constexpr auto kNap = std::chrono::milliseconds(50);  // who asks to stop waits no longer than this
constexpr const char* kConditions = "nan,inf,spike=10";

struct WatchOptions {
  watch::FollowOptions follow;
  bool once = false;
  bool json = false;
};

Result<double> parse_distance(const std::string& word) {
  double value = 0;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || !(value > 0 && value < 1e9))
    return fail(Error(ErrorCode::kUsage)
                << "--distance '" << printable(word) << "' is no number above 0");
  return value;
}

class WatchCommand : public CommandOf<WatchOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.add_operand("DIR", options_.follow.path,
                    "a recording of a torch model, which may still grow or not be there yet");
    set.group("What");
    set.add_option("--golden", options_.follow.golden, "DIR",
                   "another recording of the model, whose rounds are the same");
    set.add_option("--when", when_, "LIST",
                   "what to look for: nan, inf, 'norm>X', spike=F (F times the\n"
                   "running median); nan,inf,spike=10 if not given");
    set.add_option("--distance", distance_, "D",
                   "how far from golden, relative to its norm, statistics must prove\n"
                   "a tensor to be; 0.05 if not given");
    set.group("How");
    set.add_flag("--once", options_.once, "read what is there, and do not wait for more");
    set.group("Output");
    set.add_flag("--json", options_.json, "print one JSON document, at the end");
  }

  Result<void> understand() override {
    auto conditions = watch::parse_conditions(when_);
    if (!conditions)
      return fail(Error(ErrorCode::kUsage) << "--when " << conditions.error().message());
    options_.follow.conditions = std::move(*conditions);
    auto distance = parse_distance(distance_);
    if (!distance) return fail(distance.error());
    options_.follow.distance = *distance;
    return {};
  }

  int run() override {
    const GracefulStop stop;
    watch::Follower follower(options_.follow);
    if (auto done = follow(follower, stop.requested()); !done) return report_error(done.error());
    for (const Error& problem : follower.problems()) log_warning(problem.text());
    return print(options_.json ? summary::watch_json(follower, options_.follow)
                               : summary::watch_text(follower, options_.follow));
  }

 private:
  Result<void> follow(watch::Follower& follower, const std::atomic<bool>& stop) const {
    bool has_waited = false;
    while (true) {
      const auto done = follower.pass(!options_.once);
      const bool is_missing = !done && done.error().code() == ErrorCode::kNotFound;
      if (!done && (options_.once || !is_missing)) return done;
      if (is_missing && !has_waited) {
        log_info("waiting for a recording: " + done.error().text());
        has_waited = true;
      }
      for (const watch::Departure& each : follower.take_new())
        if (!options_.json)
          if (auto told = write_stdout(summary::departure_text(each) + "\n"); !told) return told;
      if (options_.once || follower.has_ended()) return {};
      const auto end = std::chrono::steady_clock::now() + kInterval;
      while (!stop && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kNap);
      // To be stopped is how watching ends.
      if (stop) return is_missing ? done : Result<void>();
    }
  }

  std::string when_ = kConditions;
  std::string distance_ = "0.05";
};

}  // namespace

CommandEntry watch_command() {
  return {"llm watch",
          "Follow a recording of a torch model and show where it goes wrong",
          {"DIR [--golden DIR] [options]",
           {"llm watch out/ait_dump", "llm watch out/ait_dump --golden golden/ait_dump",
            "llm watch out/ait_dump --once --json"}},
          &make_command<WatchCommand>};
}

}  // namespace ait::cli
