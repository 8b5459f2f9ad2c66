# Makes everstep::libtorch: LibTorch for the CPU, from the wheel that scripts/setup puts into build/venv.
#
# find_package(Torch) is not used on purpose: the wheel is a CUDA build, so it would demand a CUDA toolkit and probe for
# GPUs. Two libraries and two include directories are all a CPU program needs.

set(wheels ${CMAKE_CURRENT_LIST_DIR}/libtorch-wheels.txt)
set(EVERSTEP_VENV ${PROJECT_SOURCE_DIR}/build/venv CACHE PATH "Where scripts/setup installed the LibTorch wheel")

execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${wheels} ${EVERSTEP_VENV}/installed-wheels.txt
  RESULT_VARIABLE wheels_differ OUTPUT_QUIET ERROR_QUIET)
if(wheels_differ)
  message(FATAL_ERROR "LibTorch as pinned in ${wheels} is not in ${EVERSTEP_VENV} (hint: run scripts/setup, or configure "
    "with -DEVERSTEP_CORE_ONLY=ON)")
endif()

file(STRINGS ${wheels} torch_pin REGEX "^torch==")
string(REPLACE "torch==" "" EVERSTEP_LIBTORCH_VERSION ${torch_pin})
file(GLOB torch_root ${EVERSTEP_VENV}/lib/python3*/site-packages/torch)

add_library(everstep_c10 SHARED IMPORTED)
set_target_properties(everstep_c10 PROPERTIES IMPORTED_LOCATION ${torch_root}/lib/libc10.so)
add_library(everstep::libtorch SHARED IMPORTED)
set_target_properties(everstep::libtorch PROPERTIES IMPORTED_LOCATION ${torch_root}/lib/libtorch_cpu.so)
target_link_libraries(everstep::libtorch INTERFACE everstep_c10)
target_include_directories(everstep::libtorch SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
