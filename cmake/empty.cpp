// tn_core's own source: CMake wants one in every library; the rest comes from object libraries.
