# Installs the libraries of Everstep into a scratch prefix, then configures, builds and runs a small project that finds it there.

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${scratch})
run(${CMAKE_COMMAND} --install ${everstep_build} --component libraries --prefix ${scratch}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${consumer} -B ${scratch}/build
  -D CMAKE_PREFIX_PATH=${scratch}/prefix -D EVERSTEP_VERSION=${version})
run(${CMAKE_COMMAND} --build ${scratch}/build)
run(${scratch}/build/consumer)
