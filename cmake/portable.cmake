# A toolchain file: g++ 12 and its static libraries, linked against glibc 2.28 and no other shared library. Give
# -DAIT_PORTABLE=x86_64 or aarch64, after scripts/portable has made build/portable/<that>.
set(AIT_PORTABLE "" CACHE STRING "The machine to build for: x86_64 or aarch64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AIT_PORTABLE)
set(AIT_PORTABLE_FOLDER ${CMAKE_CURRENT_LIST_DIR}/../build/portable/${AIT_PORTABLE})
cmake_path(NORMAL_PATH AIT_PORTABLE_FOLDER)

cmake_host_system_information(RESULT host QUERY OS_PLATFORM)
if(NOT AIT_PORTABLE STREQUAL host)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${AIT_PORTABLE})
  set(CMAKE_C_COMPILER ${AIT_PORTABLE}-linux-gnu-gcc)
  set(CMAKE_CXX_COMPILER ${AIT_PORTABLE}-linux-gnu-g++)
else()
  # The name by which the ordinary build calls it: the compiler cache then serves both.
  set(CMAKE_C_COMPILER cc)
  set(CMAKE_CXX_COMPILER c++)
endif()

# -B: start-up files and C library are looked for there first. What static libraries define stays inside.
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT
    "-B${AIT_PORTABLE_FOLDER}/glibc/ -static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL")
endforeach()
