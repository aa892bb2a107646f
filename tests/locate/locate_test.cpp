#include "locate/locate.h"

#include <gtest/gtest.h>

namespace ait::locate {
namespace {
}  // namespace
}  // namespace ait::locate
