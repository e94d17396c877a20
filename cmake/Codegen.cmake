# Runs the generator while configuring, when one of its inputs differs from those of its last run. It rewrites a file only
# when its bytes change, so an unrelated edit of a claim recompiles nothing.

set(TN_GENERATED "${CMAKE_SOURCE_DIR}/generated")
if(TN_CODEGEN AND EXISTS "${CMAKE_SOURCE_DIR}/codegen/cli.py")
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS
    "${CMAKE_SOURCE_DIR}/codegen/*.py" "${CMAKE_SOURCE_DIR}/codegen/*.yaml" "${CMAKE_SOURCE_DIR}/codegen/*.tsv"
    "${CMAKE_SOURCE_DIR}/templates/*.j2" "${CMAKE_SOURCE_DIR}/kernels/*.yaml" "${CMAKE_SOURCE_DIR}/upstream.toml")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
  set(digest "")
  foreach(input IN LISTS inputs)
    file(SHA256 "${input}" hash)
    string(APPEND digest "${hash} ${input}\n")
  endforeach()
  string(SHA256 digest "${digest}")
  # Beside all build folders, since they share generated/; `make codegen` removes it.
  set(stamp "${CMAKE_SOURCE_DIR}/build/codegen.inputs")
  set(last "")
  if(EXISTS "${stamp}" AND EXISTS "${TN_GENERATED}/sources.cmake" AND EXISTS "${TN_GENERATED}/manifest.json")
    file(READ "${stamp}" last)
  endif()
  if(NOT digest STREQUAL last)
    execute_process(
      COMMAND ${Python_EXECUTABLE} -m codegen generate --out "${TN_GENERATED}"
      WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE "${stamp}" "${digest}")
  endif()
endif()

# generated/sources.cmake sets TN_GENERATED_SOURCES, paths relative to generated/; files under bindings/ include Python.h
# and belong to torch._C, those under autograd/ are large and cold.
set(TN_GENERATED_SOURCES "")
include("${TN_GENERATED}/sources.cmake" OPTIONAL)
list(TRANSFORM TN_GENERATED_SOURCES PREPEND "${TN_GENERATED}/")
set(TN_GENERATED_BINDINGS ${TN_GENERATED_SOURCES})
list(FILTER TN_GENERATED_BINDINGS INCLUDE REGEX "/generated/bindings/")
list(FILTER TN_GENERATED_SOURCES EXCLUDE REGEX "/generated/bindings/")
set(autograd ${TN_GENERATED_SOURCES})
list(FILTER autograd INCLUDE REGEX "/generated/autograd/")
set_source_files_properties(${autograd} PROPERTIES COMPILE_OPTIONS -O1)
