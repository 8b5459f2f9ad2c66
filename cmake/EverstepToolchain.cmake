# What holds for every file of the tree, whichever target it belongs to.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Paths below the root count as relative ones, so that a second clone finds what the first has compiled; the sloppiness
# is what ccache asks for to work with a precompiled header.
find_program(EVERSTEP_CCACHE ccache)
if(EVERSTEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${EVERSTEP_CCACHE})
endif()
# Sources that are compiled as one are included by their full paths; __FILE__ must not differ between two clones. Checks
# and tests then name files from the root.
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)

# lld links in a fifth of the time.
find_program(EVERSTEP_LLD ld.lld)
if(EVERSTEP_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# A sanitizer must see the whole program: mixed objects report errors that are not there.
# AddressSanitizer stops at a null pointer anyway, and these three checks of UBSan double the time to compile.
if(EVERSTEP_SANITIZE STREQUAL "address")
  set(everstep_sanitizers address,undefined -fno-sanitize=null,alignment,vptr)
elseif(EVERSTEP_SANITIZE STREQUAL "thread")
  set(everstep_sanitizers thread)
elseif(EVERSTEP_SANITIZE)
  message(FATAL_ERROR "EVERSTEP_SANITIZE is '${EVERSTEP_SANITIZE}' (hint: use address, thread, or leave it empty)")
endif()
if(everstep_sanitizers)
  add_compile_options(-fsanitize=${everstep_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${everstep_sanitizers})
endif()

# Coverage for the fuzzers' choice of inputs; their main() is linked by the fuzzers only.
if(EVERSTEP_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()
