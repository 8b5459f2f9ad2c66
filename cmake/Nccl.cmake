# Makes everstep::nccl: the header of NCCL from the wheel that `scripts/setup --cuda` puts into build/venv (toolkits carry
# one that is too old for LibTorch), and the CUDA runtime. The library is not linked but loaded when it is needed:
# EVERSTEP_NCCL says where the wheel's is, and everstep::nccl defines it.

include(Cuda)

set(nccl_wheels ${CMAKE_CURRENT_LIST_DIR}/nccl-wheels.txt)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${nccl_wheels} ${EVERSTEP_VENV}/installed-nccl-wheels.txt
  RESULT_VARIABLE wheels_differ OUTPUT_QUIET ERROR_QUIET)
if(wheels_differ)
  message(FATAL_ERROR "NCCL as pinned in ${nccl_wheels} is not in ${EVERSTEP_VENV} (hint: run scripts/setup --cuda)")
endif()
file(GLOB nvidia_root ${EVERSTEP_VENV}/lib/python3*/site-packages/nvidia)

add_library(everstep_nccl INTERFACE)
add_library(everstep::nccl ALIAS everstep_nccl)
target_compile_definitions(everstep_nccl INTERFACE EVERSTEP_NCCL="${nvidia_root}/nccl/lib/libnccl.so.2")
# Before the toolkit's directories, which may hold an older nccl.h.
target_include_directories(everstep_nccl SYSTEM BEFORE INTERFACE ${nvidia_root}/nccl/include)
target_link_libraries(everstep_nccl INTERFACE everstep::cudart ${CMAKE_DL_LIBS})
