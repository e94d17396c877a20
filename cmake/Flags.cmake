# Compiler and linker settings for every target.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(TN_CCACHE ccache)
if(TN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the source folder, so that another clone finds the same objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 ${TN_CCACHE})
endif()

add_library(tn_flags INTERFACE)
target_compile_options(tn_flags INTERFACE
  -Wall -Wextra -Wpedantic $<$<BOOL:${TN_WERROR}>:-Werror>
  -ffunction-sections -fdata-sections
  # A fused multiply-add only where the source says so: else g++ contracts a*b+c in some SIMD targets and not in others.
  -ffp-contract=off
  # A thread-local read costs half with this model (4 to 5 ns less on every call that makes one). It draws on the small
  # reserve that libc keeps for libraries loaded late: tests/package bounds what torch._C takes of it.
  -ftls-model=initial-exec
  # Calls into CPython go through one pointer instead of a jump to a stub.
  -fno-plt)
target_include_directories(tn_flags INTERFACE "${CMAKE_SOURCE_DIR}")
if(TN_SANITIZE)
  target_compile_options(tn_flags INTERFACE -fsanitize=${TN_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(tn_flags INTERFACE -fsanitize=${TN_SANITIZE})
endif()
target_link_options(tn_flags INTERFACE
  -Wl,--gc-sections -Wl,--as-needed
  # 16 KB pages exist on phones and some aarch64 servers.
  -Wl,-z,max-page-size=16384)
