# What another CMake project needs to use the libraries:
#
#   cmake --install build --prefix PREFIX --component development
#   find_package(ait REQUIRED)                              # with PREFIX in CMAKE_PREFIX_PATH
#   target_link_libraries(program PRIVATE ait::metrics)     # #include "metrics/compare.h"
#
# ait_library() adds each library and its headers; tests/install uses them. A wheel has none of this: pyproject.toml
# installs the component `python` alone.
include(CMakePackageConfigHelpers)
set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/ait)
# Before version 1 any minor version may change an interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/aitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT ait NAMESPACE ait:: FILE aitTargets.cmake DESTINATION ${folder} COMPONENT development)
install(FILES cmake/aitConfig.cmake ${PROJECT_BINARY_DIR}/aitConfigVersion.cmake
  DESTINATION ${folder} COMPONENT development)
