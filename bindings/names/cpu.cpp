// What torch.cpu asks about the processor. The kernel's own list of flags is portable where cpuid is not.
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

struct Feature {
  const char* key;   // upstream's
  const char* flag;  // Linux's, in /proc/cpuinfo
};

constexpr Feature kFeatures[] = {
    {"sse", "sse"},
    {"sse2", "sse2"},
    {"sse3", "pni"},
    {"ssse3", "ssse3"},
    {"sse4_1", "sse4_1"},
    {"sse4_2", "sse4_2"},
    {"sse4a", "sse4a"},
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"avx_vnni", "avx_vnni"},
    {"avx_ne_convert", "avx_ne_convert"},
    {"avx_vnni_int8", "avx_vnni_int8"},
    {"avx_vnni_int16", "avx_vnni_int16"},
    {"avx512_f", "avx512f"},
    {"avx512_cd", "avx512cd"},
    {"avx512_dq", "avx512dq"},
    {"avx512_bw", "avx512bw"},
    {"avx512_vl", "avx512vl"},
    {"avx512_ifma", "avx512ifma"},
    {"avx512_vbmi", "avx512vbmi"},
    {"avx512_vbmi2", "avx512_vbmi2"},
    {"avx512_bitalg", "avx512_bitalg"},
    {"avx512_vpopcntdq", "avx512_vpopcntdq"},
    {"avx512_vnni", "avx512_vnni"},
    {"avx512_bf16", "avx512_bf16"},
    {"avx512_fp16", "avx512_fp16"},
    {"avx512_vp2intersect", "avx512_vp2intersect"},
    {"avx512_4vnniw", "avx512_4vnniw"},
    {"avx512_4fmaps", "avx512_4fmaps"},
    {"avx10_1", "avx10_1"},
    {"avx10_2", "avx10_2"},
    {"amx_tile", "amx_tile"},
    {"amx_int8", "amx_int8"},
    {"amx_bf16", "amx_bf16"},
    {"amx_fp16", "amx_fp16"},
    {"f16c", "f16c"},
    {"fma3", "fma"},
    {"fma4", "fma4"},
    {"bmi", "bmi1"},
    {"bmi2", "bmi2"},
    {"popcnt", "popcnt"},
    {"lzcnt", "abm"},
    {"aes", "aes"},
    {"sha", "sha_ni"},
    {"clflush", "clflush"},
    {"clflushopt", "clflushopt"},
    {"clwb", "clwb"},
};

// The text after the colon of the first line that starts with `key`, with a space at both ends.
std::string cpuinfo_line(const char* key) {
  std::string found = " ";
  std::FILE* file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return found;
  char line[8192];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) != 0) continue;
    const char* colon = std::strchr(line, ':');
    if (colon != nullptr) found += colon + 1;
    while (found.size() > 1 && (found.back() == '\n' || found.back() == ' ')) found.pop_back();
    break;
  }
  std::fclose(file);
  return found + ' ';
}

bool has_flag(const std::string& flags, const char* flag) {
  return flags.find(std::string(" ") + flag + ' ') != std::string::npos;
}

PyObject* cpu_features(PyObject*, PyObject*) {
  const std::string flags = cpuinfo_line("flags");
  PyObject* result = PyDict_New();
  if (result == nullptr) return nullptr;
  for (const Feature& feature : kFeatures) {
    if (PyDict_SetItemString(result, feature.key, has_flag(flags, feature.flag) ? Py_True : Py_False)) {
      return Py_DECREF(result), nullptr;
    }
  }
  PyObject* cores = PyLong_FromUnsignedLong(std::thread::hardware_concurrency());
  const int failed = cores == nullptr || PyDict_SetItemString(result, "num_logical_cores", cores);
  Py_XDECREF(cores);
  return failed ? (Py_DECREF(result), nullptr) : result;
}

// Upstream's names for the vector width that its kernels take.
PyObject* cpu_capability(PyObject*, PyObject*) {
  const std::string flags = cpuinfo_line("flags");
  if (has_flag(flags, "avx512f") && has_flag(flags, "avx512bw") && has_flag(flags, "avx512vl")) {
    return PyUnicode_FromString("AVX512");
  }
  return PyUnicode_FromString(has_flag(flags, "avx2") && has_flag(flags, "fma") ? "AVX2" : "DEFAULT");
}

PyMethodDef root_methods[] = {
    {"_get_cpu_capability", cpu_capability, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef cpu_methods[] = {
    {"_get_cpu_capability", cpu_features, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_cpu_functions(PyObject* module) {
  PyObject* cpu = PyObject_GetAttrString(module, "_cpu");
  if (cpu == nullptr) return false;
  const int failed = PyModule_AddFunctions(cpu, cpu_methods);
  Py_DECREF(cpu);
  return failed == 0 && PyModule_AddFunctions(module, root_methods) == 0;
}

}  // namespace tn::py::names
