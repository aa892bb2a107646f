// Settings for the plug-ins of the tests.
#pragma once

#include "rerun/runner.h"

namespace ait::rerun {

// "stand_in", "stand_in_old", …: see CMakeLists.txt.
inline Settings stand_in(const std::string& name = "stand_in") {
  Settings settings;
  settings.plugin = std::string(AIT_TEST_PLUGINS) + "/" + name + ".so";
  settings.worker = AIT_TEST_WORKER;
  return settings;
}

}  // namespace ait::rerun
