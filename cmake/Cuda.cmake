# What the GPU adapters are built with, for the preset `cuda` alone.
#
#   everstep::cudart                  the CUDA runtime: of a toolkit, or of wheels where there is none
#   everstep::libtorch_cuda           LibTorch for GPUs; the libraries it needs in turn (cuBLAS …) are looked for when a
#                                     program starts, not when it is linked
#   everstep_cuda_object(<variable> <source.cu>)   compiles for all GPUs that are supported; <variable> is the object
#   everstep_ptx(<output> <source.cu> [<flags>…])  the same as text, for tests; flags instead of the precise ones
#
# What LibTorch for GPUs needs of NVIDIA is looked for where the loader looks, in a toolkit, and in build/venv-cuda, into
# which `scripts/setup --cuda-libraries` puts what is missing. EVERSTEP_CUDA_LIBRARIES says whether it did.
#
# nvcc is that of CUDACXX, of a toolkit, or of PyPI's wheel nvidia-cuda-nvcc in build/venv. It is called directly:
# enable_language(CUDA) would want a whole toolkit.

include_guard(GLOBAL)
set(EVERSTEP_GPUS 80 90 100 CACHE STRING "Compute capabilities that kernels are compiled for")
file(GLOB nvidia_root ${EVERSTEP_VENV}/lib/python3*/site-packages/nvidia)
if(DEFINED ENV{CUDACXX})
  set(EVERSTEP_NVCC $ENV{CUDACXX} CACHE FILEPATH "CUDA's compiler")
endif()
find_program(EVERSTEP_NVCC nvcc PATHS /usr/local/cuda/bin ${nvidia_root}/cu13/bin DOC "CUDA's compiler")
if(NOT EVERSTEP_NVCC)
  message(FATAL_ERROR "no nvcc was found (hint: run scripts/setup --cuda, or say where one of CUDA 13 is with CUDACXX)")
endif()

find_package(CUDAToolkit 13 QUIET)
add_library(everstep_cudart INTERFACE)
add_library(everstep::cudart ALIAS everstep_cudart)
if(CUDAToolkit_FOUND)
  target_link_libraries(everstep_cudart INTERFACE CUDA::cudart)
else()
  target_link_libraries(everstep_cudart INTERFACE ${nvidia_root}/cu13/lib/libcudart.so.13)
  target_include_directories(everstep_cudart SYSTEM INTERFACE ${nvidia_root}/cu13/include)
endif()

set(EVERSTEP_CUDA_VENV ${PROJECT_SOURCE_DIR}/build/venv-cuda CACHE PATH "Where scripts/setup put NVIDIA's libraries")
file(GLOB cuda_library_folders ${EVERSTEP_CUDA_VENV}/lib/python3*/site-packages/nvidia/*/lib)
list(APPEND CMAKE_BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR} ${cuda_library_folders})
add_link_options(LINKER:--disable-new-dtags) # so that the path serves libraries that libraries need, too
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${CMAKE_CURRENT_LIST_DIR}/cuda-library-wheels.txt
  ${EVERSTEP_CUDA_VENV}/installed-wheels.txt RESULT_VARIABLE libraries_differ OUTPUT_QUIET ERROR_QUIET)
if(libraries_differ)
  set(EVERSTEP_CUDA_LIBRARIES OFF)
else()
  set(EVERSTEP_CUDA_LIBRARIES ON)
endif()

add_library(everstep_c10_cuda SHARED IMPORTED)
set_target_properties(everstep_c10_cuda PROPERTIES IMPORTED_LOCATION ${torch_root}/lib/libc10_cuda.so)
add_library(everstep_torch_cuda SHARED IMPORTED)
set_target_properties(everstep_torch_cuda PROPERTIES IMPORTED_LOCATION ${torch_root}/lib/libtorch_cuda.so)
add_library(everstep_libtorch_cuda INTERFACE)
add_library(everstep::libtorch_cuda ALIAS everstep_libtorch_cuda)
# A program names nothing of libtorch_cuda itself: its kernels register themselves when it is loaded.
target_link_libraries(everstep_libtorch_cuda INTERFACE everstep::libtorch everstep_c10_cuda everstep::cudart
  -Wl,--push-state,--no-as-needed everstep_torch_cuda -Wl,--pop-state)
target_link_options(everstep_libtorch_cuda INTERFACE -Wl,--allow-shlib-undefined)

# Nothing is contracted, approximated or flushed to zero: the same bits as on the CPU.
set(everstep_precise_flags -fmad=false -prec-div=true -prec-sqrt=true -ftz=false)
set(everstep_nvcc_flags -std=c++20 -O3 -I${PROJECT_SOURCE_DIR} -ccbin ${CMAKE_CXX_COMPILER}
  -Xcompiler=-ffp-contract=off,-Wall,-Wextra,-fPIC)
if(EVERSTEP_WERROR)
  list(APPEND everstep_nvcc_flags -Werror=all-warnings -Xcompiler=-Werror)
endif()

function(everstep_cuda_object variable source)
  cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE input)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${source}.o)
  list(TRANSFORM EVERSTEP_GPUS REPLACE "(.+)" "-gencode=arch=compute_\\1,code=sm_\\1" OUTPUT_VARIABLE targets)
  list(GET EVERSTEP_GPUS -1 newest) # as PTX too, for GPUs to come
  add_custom_command(OUTPUT ${object}
    COMMAND ${EVERSTEP_NVCC} ${everstep_nvcc_flags} ${everstep_precise_flags} ${targets}
      -gencode=arch=compute_${newest},code=compute_${newest} -MD -MF ${object}.d -c ${input} -o ${object}
    DEPENDS ${input} DEPFILE ${object}.d COMMENT "Compiling ${source} for GPUs" VERBATIM)
  set(${variable} ${object} PARENT_SCOPE)
endfunction()

function(everstep_ptx output source)
  list(GET EVERSTEP_GPUS 0 oldest)
  if(ARGN)
    set(everstep_precise_flags ${ARGN})
  endif()
  add_custom_command(OUTPUT ${output}
    COMMAND ${EVERSTEP_NVCC} ${everstep_nvcc_flags} ${everstep_precise_flags} -arch=compute_${oldest} -ptx
      -MD -MF ${output}.d ${source} -o ${output}
    DEPENDS ${source} DEPFILE ${output}.d COMMENT "Writing ${output}" VERBATIM)
endfunction()
