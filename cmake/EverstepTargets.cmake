# The kinds of target this project has. Names follow folders: storage/json is `storage_json`, linked as
# `everstep::storage_json`. Includes are written from the root: #include "scheduler/plan.h".
#
#   everstep_library(<name> SOURCES … [DEPENDS …] [PRIVATE_DEPENDS …] [SEPARATE])
#   everstep_program(<name> SOURCES … [DEPENDS …])                          lands in bin/ and is installed
#   everstep_test(<name> SOURCES … [DEPENDS …] LABELS <one> [TIMEOUT <s>] [SHARDS <n>] [SEPARATE]
#                 [PROGRAM <name>]                                          runs that everstep_worker_program's everstep
#                 [HEADERS_OF <target>])                                    uses its precompiled headers, not GoogleTest's
#   everstep_worker_program(<name> SOURCES … [DEPENDS …])                   everstep beside a worker program of the tests
#   everstep_core_test(<the same>)                                          also built under the sanitizers
#   everstep_bench(<name> SOURCES … [DEPENDS …])                            Google Benchmark, main included
#
# The presets compile two dozen sources as one, which is much faster. So names in unnamed namespaces of one target
# have to differ. SEPARATE is for targets whose sources are alike on purpose: each is compiled by itself.

include(GNUInstallDirs)

# "base/version.h" is included like any other header; only this line knows that it is generated.
configure_file(${PROJECT_SOURCE_DIR}/base/version.h.in ${PROJECT_BINARY_DIR}/generated/base/version.h @ONLY)

if(BUILD_TESTING)
  include(GoogleTest)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(EVERSTEP_BENCH)
  find_package(benchmark REQUIRED)
endif()

# At -O2 test code would take longer to compile than its tests would save.
function(everstep_test_rules target)
  everstep_compile_rules(${target})
  target_compile_options(${target} PRIVATE -Og)
  target_compile_definitions(${target} PRIVATE $<$<BOOL:${EVERSTEP_LONG_TESTS}>:EVERSTEP_LONG_TESTS>)
endfunction()

# GoogleTest takes longer to read than most tests, so it is read once for all of them.
function(everstep_precompile_test_headers)
  set(source ${PROJECT_BINARY_DIR}/generated/test_headers.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(everstep_test_headers OBJECT ${source})
  everstep_test_rules(everstep_test_headers)
  target_link_libraries(everstep_test_headers PRIVATE GTest::gmock)
  target_precompile_headers(everstep_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <algorithm> <chrono> <filesystem> <fstream> <functional> <map> <memory> <mutex>
    <optional> <set> <span> <sstream> <string> <thread> <vector>)
endfunction()

function(everstep_compile_rules target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -ffp-contract=off # the same bits with and without fused multiply-add
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion $<$<BOOL:${EVERSTEP_WERROR}>:-Werror>)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/everstep>)
endfunction()

function(everstep_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SEPARATE" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS")
  add_library(everstep_${name} STATIC ${arg_SOURCES})
  if(arg_SEPARATE)
    set_target_properties(everstep_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  add_library(everstep::${name} ALIAS everstep_${name})
  set_target_properties(everstep_${name} PROPERTIES EXPORT_NAME ${name})
  everstep_compile_rules(everstep_${name})
  target_link_libraries(everstep_${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
endfunction()

# With what it needs of the LibTorch wheel in a folder that it finds from its own place, so that a prefix can be moved
# and given to other hosts. All else is of Debian's packages.
function(everstep_install_program name)
  set(libraries ${CMAKE_INSTALL_LIBDIR}/everstep)
  file(RELATIVE_PATH from_program /${CMAKE_INSTALL_BINDIR} /${libraries})
  set_target_properties(${name} PROPERTIES INSTALL_RPATH $ORIGIN/${from_program})
  install(TARGETS ${name} RUNTIME_DEPENDENCY_SET ${name} RUNTIME COMPONENT programs)
  install(RUNTIME_DEPENDENCY_SET ${name} POST_INCLUDE_REGEXES /site-packages/ POST_EXCLUDE_REGEXES .*
    LIBRARY DESTINATION ${libraries} COMPONENT programs)
endfunction()

function(everstep_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  everstep_compile_rules(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS})
  everstep_install_program(${name})
endfunction()

function(everstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "CORE;VALUES;SEPARATE" "TIMEOUT;SHARDS;PROGRAM;HEADERS_OF" "SOURCES;DEPENDS;LABELS")
  list(LENGTH arg_LABELS label_count)
  if(NOT label_count EQUAL 1) # gtest_discover_tests of CMake 3.25 would silently take the second for a property
    message(FATAL_ERROR "the test ${name} has ${label_count} labels (hint: give the one that names its level)")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  if(arg_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  everstep_test_rules(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  if(NOT arg_HEADERS_OF)
    set(arg_HEADERS_OF everstep_test_headers)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${arg_HEADERS_OF})
  set(is_run_elsewhere OFF)
  if(arg_CORE AND NOT EVERSTEP_CORE_TESTS)
    set(is_run_elsewhere ON)
  elseif(arg_VALUES AND EVERSTEP_SANITIZE AND NOT EVERSTEP_SANITIZE_ALL)
    set(is_run_elsewhere ON)
  endif()
  if(is_run_elsewhere)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  set(environment "")
  set(cost "")
  if(arg_PROGRAM)
    add_dependencies(${name} ${arg_PROGRAM}-program)
    get_target_property(program ${arg_PROGRAM}-program PROGRAM)
    list(APPEND environment TEST_PROGRAM=${program})
    set(cost COST 100) # jobs wait for much, so they begin first
  endif()
  if(arg_SHARDS) # what takes half a second to start does so n times, and not for each of its tests
    foreach(shard RANGE 1 ${arg_SHARDS})
      math(EXPR index "${shard} - 1")
      set(of_shard ${environment} GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
      add_test(NAME ${name}.${shard} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}.${shard} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST 100
        ENVIRONMENT "${of_shard}")
    endforeach()
    return()
  endif()
  if(environment)
    set(environment ENVIRONMENT "${environment}")
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
                       ${cost} ${environment})
endfunction()

# In a folder of its own, where everstep finds it under the name that the product's worker program has.
function(everstep_worker_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_executable(${name}-worker ${arg_SOURCES})
  everstep_compile_rules(${name}-worker)
  target_link_libraries(${name}-worker PRIVATE ${arg_DEPENDS})
  set_target_properties(${name}-worker PROPERTIES OUTPUT_NAME everstep-worker RUNTIME_OUTPUT_DIRECTORY ${folder}
    EXCLUDE_FROM_ALL ON)
  add_custom_command(OUTPUT ${folder}/everstep
    COMMAND ${CMAKE_COMMAND} -E create_hardlink $<TARGET_FILE:everstep> ${folder}/everstep
    DEPENDS everstep VERBATIM)
  add_custom_target(${name}-program DEPENDS ${folder}/everstep ${name}-worker)
  set_target_properties(${name}-program PROPERTIES PROGRAM ${folder}/everstep)
endfunction()

# Under the sanitizers a test of the core finds more than without them. Who runs those presets too need not run it twice.
macro(everstep_core_test name)
  everstep_test(${name} ${ARGN} CORE)
endmacro()

# Tests of code that computes with plain values, without buffers, threads or descriptors. CI runs them without sanitizers,
# which see that code in the simulator's tests and the trainer's; at night they see these too (EVERSTEP_SANITIZE_ALL).
macro(everstep_value_test name)
  everstep_test(${name} ${ARGN} VALUES)
endmacro()

function(everstep_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS")
  add_executable(${name} ${arg_SOURCES})
  everstep_compile_rules(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} benchmark::benchmark_main)
endfunction()

if(BUILD_TESTING)
  everstep_precompile_test_headers()
endif()
