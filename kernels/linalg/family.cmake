# Eigen is headers alone (MPL-2.0; the parts of it under another licence are switched off).
find_package(Eigen3 3.4 CONFIG QUIET)
if(NOT TARGET Eigen3::Eigen)
  message(FATAL_ERROR "Eigen 3.4 not found: install libeigen3-dev (Debian), or give its CMake folder with -DEigen3_DIR=<folder>")
endif()
get_target_property(include Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(tn_kernels_linalg SYSTEM PRIVATE ${include})
# Threads are ours, over the batch.
target_compile_definitions(tn_kernels_linalg PRIVATE EIGEN_MPL2_ONLY EIGEN_DONT_PARALLELIZE)
# Loops over columns have no vector bodies of their own.
target_compile_options(tn_kernels_linalg PRIVATE -ftree-vectorize -fvect-cost-model=dynamic)
