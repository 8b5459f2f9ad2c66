# Makes everstep::nccl: NCCL from the wheel that `scripts/setup --cuda` puts into build/venv (toolkits carry one that is
# too old for LibTorch), and the CUDA runtime.

include(Cuda)

set(nccl_wheels ${CMAKE_CURRENT_LIST_DIR}/nccl-wheels.txt)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${nccl_wheels} ${EVERSTEP_VENV}/installed-nccl-wheels.txt
  RESULT_VARIABLE wheels_differ OUTPUT_QUIET ERROR_QUIET)
if(wheels_differ)
  message(FATAL_ERROR "NCCL as pinned in ${nccl_wheels} is not in ${EVERSTEP_VENV} (hint: run scripts/setup --cuda)")
endif()
file(GLOB nvidia_root ${EVERSTEP_VENV}/lib/python3*/site-packages/nvidia)

add_library(everstep::nccl SHARED IMPORTED)
set_target_properties(everstep::nccl PROPERTIES IMPORTED_LOCATION ${nvidia_root}/nccl/lib/libnccl.so.2)
# Before the toolkit's directories, which may hold an older nccl.h and an older library.
target_include_directories(everstep::nccl SYSTEM BEFORE INTERFACE ${nvidia_root}/nccl/include)
target_link_options(everstep::nccl INTERFACE -Wl,-rpath,${nvidia_root}/nccl/lib)
target_link_libraries(everstep::nccl INTERFACE everstep::cudart)
