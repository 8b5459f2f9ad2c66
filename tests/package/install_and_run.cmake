# Installs the programs of Everstep into a scratch prefix, moves that elsewhere as if to another host, and looks whether
# they find their libraries there and nowhere in the build, and whether they train.

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output
    ECHO_OUTPUT_VARIABLE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${scratch})
run(${CMAKE_COMMAND} --install ${everstep_build} --component programs --prefix ${scratch}/prefix)
set(prefix ${scratch}/elsewhere)
file(RENAME ${scratch}/prefix ${prefix})

foreach(program everstep everstep-worker)
  run(readelf -d ${prefix}/bin/${program})
  if(output MATCHES "(RUNPATH|RPATH)[^\n]*[[::]/")
    message(FATAL_ERROR "${program} looks for libraries at a place of this machine")
  endif()
  run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ldd ${prefix}/bin/${program})
  if(output MATCHES "not found|site-packages")
    message(FATAL_ERROR "${program} does not find all its libraries in the prefix and the system")
  endif()
endforeach()
string(FIND "${output}" "libtorch_cpu.so => ${prefix}/" place)
if(place EQUAL -1)
  message(FATAL_ERROR "everstep-worker has no LibTorch of its own")
endif()

run(${prefix}/bin/everstep --version)
if(NOT output MATCHES "${version}")
  message(FATAL_ERROR "the installed program is of another version than ${version}")
endif()
run(${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH ${prefix}/bin/everstep train --workers=2 --steps=2 --data=${corpus}
  --layers=2 --hidden=16 --heads=2 --sequence=16 --output=${scratch}/run)
file(REMOVE_RECURSE ${scratch})
