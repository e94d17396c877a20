# Runs the generator while configuring; it rewrites a file only when its bytes change, so an unrelated edit of a claim
# recompiles nothing. A change of any of its inputs configures anew.

set(TN_GENERATED "${CMAKE_SOURCE_DIR}/generated")
if(TN_CODEGEN AND EXISTS "${CMAKE_SOURCE_DIR}/codegen/cli.py")
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS
    "${CMAKE_SOURCE_DIR}/codegen/*.py" "${CMAKE_SOURCE_DIR}/codegen/*.yaml"
    "${CMAKE_SOURCE_DIR}/templates/*.j2" "${CMAKE_SOURCE_DIR}/kernels/*.yaml")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs} "${CMAKE_SOURCE_DIR}/upstream.toml")
  execute_process(
    COMMAND ${Python_EXECUTABLE} -m codegen generate --out "${TN_GENERATED}"
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" COMMAND_ERROR_IS_FATAL ANY)
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
