# Helpers that every CMakeLists.txt of ait uses, and the warnings all of them build with.
include(GNUInstallDirs)

add_library(ait_warnings INTERFACE)
target_compile_options(ait_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-align -Werror
  # g++ 12 sees overlapping copies in "text" + std::string where there are none (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # libstdc++'s own std::stable_sort calls what it has marked as deprecated, and clang tells its users of it.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)

# ait_library(name SOURCES a.cpp … [HEADERS a.h …] [DEPS lib …] [LINK third::party …])
#
# Declares src/<name> as the target ait::<name>. HEADERS are those that it offers to others, all others are its own;
# DEPS are the ait libraries whose headers it includes. The test `architecture` reads the same lists and fails on any
# other #include "library/…". A library that offers headers is installed with them (install.cmake).
function(ait_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;LINK" ${ARGN})
  add_library(ait_${name} STATIC ${ARG_SOURCES})
  add_library(ait::${name} ALIAS ait_${name})
  target_compile_features(ait_${name} PUBLIC cxx_std_20)
  target_include_directories(ait_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(ait_${name} PRIVATE $<BUILD_INTERFACE:ait_warnings>)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(ait_${name} PUBLIC ait::${dep})
  endforeach()
  target_link_libraries(ait_${name} PUBLIC ${ARG_LINK})
  if(ARG_HEADERS)
    target_sources(ait_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${ARG_HEADERS})
    set_target_properties(ait_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS ait_${name} EXPORT ait
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
      FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ait COMPONENT development)
  endif()
endfunction()

# ait_test(name SOURCES a_test.cpp … DEPS lib … [LABELS slow …] [LINK third::party …])
function(ait_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS;LINK" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ait_warnings GTest::gmock GTest::gtest_main ${ARG_LINK})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name}_test PRIVATE ait::${dep})
  endforeach()
  target_compile_definitions(${name}_test PRIVATE AIT_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  set(properties TIMEOUT 120)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" OR CMAKE_CROSSCOMPILING)  # ten times as slow, and so is an emulator
    set(properties TIMEOUT 1200)
  endif()
  if(ARG_LABELS)
    list(APPEND properties LABELS "${ARG_LABELS}")
  endif()
  gtest_discover_tests(${name}_test TEST_PREFIX ${name}: DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# ait_vector_sources(a.cpp …): sources of this folder that Highway compiles once for every vector target.
function(ait_vector_sources)
  set(options)
  # The lowest vector target on x86-64 is SSSE3; without it as the baseline Highway would also compile a one-lane target,
  # which has no halves to widen.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND options -mssse3)
  endif()
  # g++ 12 misaligns vectors of 64 bytes on the stack that finds uses after a return (GCC bug 110027).
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
    list(APPEND options --param=asan-use-after-return=0)
  endif()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()
