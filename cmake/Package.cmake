# torch._C, the importable tree in build/python and the wheel's contents.

execute_process(
  COMMAND ${Python_EXECUTABLE} -m codegen.upstream fetch
  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE TN_UPSTREAM OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${Python_EXECUTABLE} -m codegen.upstream stage "${TN_PYTHON_TREE}"
  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_SOURCE_DIR}/upstream.toml" "${CMAKE_SOURCE_DIR}/codegen/upstream.py")

add_library(torch_global_deps SHARED "${CMAKE_SOURCE_DIR}/cmake/global_deps.c")
target_link_options(torch_global_deps PRIVATE -nostdlib -Wl,-z,max-page-size=16384)
set_target_properties(torch_global_deps PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${TN_PYTHON_TREE}/torch/lib" NO_SONAME ON)
install(TARGETS torch_global_deps LIBRARY DESTINATION torch/lib)

set(manager "${CMAKE_SOURCE_DIR}/cmake/torch_shm_manager")
file(COPY "${manager}" DESTINATION "${TN_PYTHON_TREE}/torch/bin")
install(PROGRAMS "${manager}" DESTINATION torch/bin)

file(MAKE_DIRECTORY "${TN_PYTHON_TREE}/torch/lib")
foreach(entry IN LISTS TN_CARRIED)
  string(REPLACE "|" ";" entry "${entry}")
  list(GET entry 0 library)
  list(GET entry 1 soname)
  file(COPY_FILE "${library}" "${TN_PYTHON_TREE}/torch/lib/${soname}" ONLY_IF_DIFFERENT)
  install(FILES "${library}" DESTINATION torch/lib RENAME "${soname}")
  # Debian keeps a library's licence beside its package's documents.
  string(REGEX REPLACE "\\.so\\.([0-9]+)$" "\\1" package "${soname}")
  if(SKBUILD AND EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright"
            DESTINATION "${SKBUILD_METADATA_DIR}/licenses/carried" RENAME "${package}.txt")
  endif()
endforeach()

if(TN_BINDINGS OR TN_GENERATED_BINDINGS)
  Python_add_library(_C MODULE WITH_SOABI ${TN_BINDINGS} ${TN_GENERATED_BINDINGS})
  target_link_libraries(_C PRIVATE tn_core pybind11::headers)
  target_link_options(_C PRIVATE
    # Only the init function is seen from outside, so that the linker can drop what nothing reaches.
    "-Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/module.map"
    # libgcc_s is no part of what torch._C may ask of a system.
    -static-libgcc)
  set_target_properties(_C PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY "${TN_PYTHON_TREE}/torch"
    LINK_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/module.map"
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/lib")
  add_dependencies(_C torch_global_deps)
  install(TARGETS _C LIBRARY DESTINATION torch)
else()
  message(STATUS "bindings/ is empty: no torch._C")
endif()

install(DIRECTORY "${TN_UPSTREAM}/torch" "${TN_UPSTREAM}/torchgen" "${TN_UPSTREAM}/functorch" DESTINATION .
        PATTERN "__pycache__" EXCLUDE)
if(IS_DIRECTORY "${CMAKE_SOURCE_DIR}/torchnative")
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/torchnative" DESTINATION . PATTERN "__pycache__" EXCLUDE)
endif()
