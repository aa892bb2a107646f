#include "cli/registry.h"

// A new command is one line here: `entry(greet)` stands for the function greet_command(), which
// greet_command.cpp defines. A macro, because nothing else declares and lists it in one place.
// clang-format off
#define AIT_COMMANDS(entry) \
  entry(compare) \
  entry(aclcmp) \
  entry(dump) \
  entry(watch) \
  entry(errcheck) \
  entry(opcheck) \
  entry(convert) \
  entry(api_dump) \
  entry(api_check) \
  entry(api_overflow) \
  entry(locate) \
  entry(report) \
  entry(show) \
  entry(demo) \
  entry(doctor) \
  entry(completion) \
  entry(man)
// clang-format on

namespace ait::cli {

#define AIT_DECLARE(name) CommandEntry name##_command();
AIT_COMMANDS(AIT_DECLARE)
#undef AIT_DECLARE

Registry all_commands() {
  Registry registry;
  registry.groups = {
      {"",
       "ait finds the operator at which a large language model goes numerically wrong.",
       {"llm compare -gp golden.npy -mp actual.npy", "show layer.pth", "doctor"}},
      {"llm",
       "Language models:",
       {"llm compare -gp golden.npy -mp actual.npy", "llm dump --exec \"bash run.sh\" -o out"}},
      {"api",
       "Pre-check of the torch APIs of a training:",
       {"api dump --exec \"python train.py\"",
        "api check -forward forward_info_4711.json -backward backward_info_4711.json"}},
      {"debug", "On-line comparison with labels", {"debug compare aclcmp --exec \"bash run.sh\""}},
      {"debug compare",
       "Compare while a script runs",
       {"debug compare aclcmp --exec \"bash run.sh\""}},
  };
#define AIT_CALL(name) name##_command(),
  registry.commands = {AIT_COMMANDS(AIT_CALL)};
#undef AIT_CALL
  return registry;
}

}  // namespace ait::cli
