/* torch/__init__.py loads lib/libtorch_global_deps.so before torch._C; ours has nothing to pull in. */
typedef int tn_no_global_deps;
