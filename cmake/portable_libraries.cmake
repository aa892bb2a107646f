# In place of Debian's shared libraries the static ones of scripts/portable. Headers and definitions are those of the
# ordinary build, so that both compile the same objects.
function(ait_portable_library target file)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${AIT_PORTABLE_FOLDER}/lib/${file} INTERFACE_COMPILE_DEFINITIONS "${ARGN}")
endfunction()
ait_portable_library(fmt::fmt libfmt.a FMT_SHARED)
ait_portable_library(simdjson::simdjson libsimdjson.a SIMDJSON_THREADS_ENABLED=1)
ait_portable_library(TBB::tbb libtbb.a)
ait_portable_library(PkgConfig::deflate libdeflate.a)
ait_portable_library(PkgConfig::hwy libhwy.a)
set_target_properties(PkgConfig::hwy PROPERTIES INTERFACE_COMPILE_OPTIONS -DHWY_SHARED_DEFINE)
