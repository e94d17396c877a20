# One object library a room, one a kernel family; tn_core is all of them, without Python.

set(TN_CORE_PARTS "")
function(tn_part name)
  if(NOT ARGN)
    return()
  endif()
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PRIVATE tn_flags)
  set(TN_CORE_PARTS ${TN_CORE_PARTS} ${name} PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/runtime/*.cpp")
tn_part(tn_runtime ${sources})
tn_part(tn_generated ${TN_GENERATED_SOURCES})

file(GLOB families CONFIGURE_DEPENDS LIST_DIRECTORIES true "${CMAKE_SOURCE_DIR}/kernels/*")
foreach(family IN LISTS families)
  if(NOT IS_DIRECTORY "${family}")
    continue()
  endif()
  get_filename_component(name "${family}" NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${family}/*.cpp")
  tn_part(tn_kernels_${name} ${sources})
  if(TARGET tn_kernels_${name})
    target_link_libraries(tn_kernels_${name} PRIVATE tn_hwy tn_sleef)
    # A family that needs a further library says so beside its kernels.
    include("${family}/family.cmake" OPTIONAL)
  endif()
endforeach()

file(GLOB_RECURSE TN_BINDINGS CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/bindings/*.cpp")

# CMake wants at least one source, also while rooms are still empty.
add_library(tn_core STATIC "${CMAKE_SOURCE_DIR}/cmake/empty.cpp")
target_link_libraries(tn_core PUBLIC tn_flags tn_hwy tn_sleef Threads::Threads ${CMAKE_DL_LIBS})
foreach(part IN LISTS TN_CORE_PARTS)
  target_sources(tn_core PRIVATE $<TARGET_OBJECTS:${part}>)
endforeach()

if(TN_TESTS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/cpp/*.cpp")
  if(sources)
    add_executable(tn_tests ${sources})
    target_link_libraries(tn_tests PRIVATE tn_core GTest::gtest GTest::gtest_main)
    # A definition, not __FILE__: a compiler cache may answer with an object of another clone.
    target_compile_definitions(tn_tests PRIVATE TN_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    enable_testing()
    add_test(NAME tn_tests COMMAND tn_tests)
  endif()
endif()
