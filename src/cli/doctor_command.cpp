#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/process_io.h"
#include "summary/machine.h"

namespace ait::cli {
namespace {

class DoctorCommand : public CommandOf<DoctorOptions> {
 public:
  void add_options(OptionSet& set) override {
    set.group("Output");
    add_json(set, options_.json);
  }

  int run() override {
    const summary::MachineFacts facts = summary::examine_here();
    return print(options_.json ? summary::machine_json(facts).text() + "\n"
                               : summary::machine_text(facts));
  }
};

}  // namespace

CommandEntry doctor_command() {
  return {"doctor",
          "Say what will and won't work on this machine",
          {"[options]", {"doctor", "doctor --json"}},
          &make_command<DoctorCommand>};
}

}  // namespace ait::cli
