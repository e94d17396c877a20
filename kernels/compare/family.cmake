# Loops over integers and truth values have no vector bodies of their own: at -O2 the compiler leaves them scalar.
target_compile_options(tn_kernels_compare PRIVATE -ftree-vectorize -fvect-cost-model=dynamic)
