#include "runtime/keyset.h"

#include <array>

namespace tn {

constinit thread_local ThreadState thread_state;

namespace {

constexpr std::string_view kFunctionalities[kNumFunctionalities] = {
    "Undefined",
    "Dense",
    "FPGA",
    "Vulkan",
    "Metal",
    "Quantized",
    "CustomRNGKeyId",
    "MkldnnCPU",
    "Sparse",
    "SparseCsr",
    "NestedTensor",
    "BackendSelect",
    "Fake",
    "Python",
    "FuncTorchDynamicLayerBackMode",
    "Functionalize",
    "Conjugate",
    "Negative",
    "ZeroTensor",
    "ADInplaceOrView",
    "AutogradOther",
    "AutogradFunctionality",
    "AutogradNestedTensor",
    "Tracer",
    "AutocastCPU",
    "AutocastMTIA",
    "AutocastMAIA",
    "AutocastXPU",
    "AutocastIPU",
    "AutocastHPU",
    "AutocastXLA",
    "AutocastMPS",
    "AutocastCUDA",
    "AutocastPrivateUse1",
    "FuncTorchBatched",
    "BatchedNestedTensor",
    "FuncTorchVmapMode",
    "Batched",
    "VmapMode",
    "FuncTorchGradWrapper",
    "DeferredInit",
    "PythonTLSSnapshot",
    "FuncTorchDynamicLayerFrontMode",
    "TESTING_ONLY_GenericWrapper",
    "TESTING_ONLY_GenericMode",
    "PreDispatch",
    "PythonDispatcher",
};

// Backend i is bit i - 1 of a key set.
constexpr std::string_view kBackends[kNumBackends] = {
    "CPU", "CUDA", "HIP",  "XLA",  "MPS",         "IPU",         "XPU",         "HPU",
    "VE",  "Lazy", "MTIA", "MAIA", "PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta",
};

struct Range {
  int start;
  DispatchKey functionality;
  std::string_view prefix;
};
constexpr std::array<Range, 6> kRanges = {{
    {48, DispatchKey::Dense, ""},
    {65, DispatchKey::Quantized, "Quantized"},
    {82, DispatchKey::Sparse, "Sparse"},
    {99, DispatchKey::SparseCsr, "SparseCsr"},
    {116, DispatchKey::NestedTensor, "NestedTensor"},
    {133, DispatchKey::AutogradFunctionality, "Autograd"},
}};

constexpr std::string_view kAliases[] = {
    "Autograd",
    "CompositeImplicitAutograd",
    "FuncTorchBatchedDecomposition",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
};
constexpr std::string_view kStarts[] = {
    "StartOfDenseBackends",     "StartOfQuantizedBackends",    "StartOfSparseBackends",
    "StartOfSparseCsrBackends", "StartOfNestedTensorBackends", "StartOfAutogradFunctionalityBackends",
};

constexpr size_t kLongest = 40;
using NameBuffer = std::array<char, kLongest>;

// "Autograd" + "CPU", for all per-backend keys, put together by the compiler.
constexpr auto kRuntimeNames = [] {
  std::array<std::array<NameBuffer, kNumBackends>, kRanges.size()> names{};
  for (size_t r = 0; r < kRanges.size(); ++r)
    for (size_t b = 0; b < kNumBackends; ++b) {
      size_t at = 0;
      for (const char c : kRanges[r].prefix) names[r][b][at++] = c;
      for (const char c : kBackends[b]) names[r][b][at++] = c;
    }
  return names;
}();

constexpr int kLastKey = static_cast<int>(DispatchKey::CompositeExplicitAutogradNonFunctional);

}  // namespace

std::string_view key_name(DispatchKey key) {
  const int k = static_cast<int>(key);
  if (k < kNumFunctionalities) return kFunctionalities[k];
  if (key == DispatchKey::EndOfFunctionalityKeys) return "EndOfFunctionalityKeys";
  for (size_t r = 0; r < kRanges.size(); ++r) {
    if (k == kRanges[r].start) return kStarts[r];
    if (k > kRanges[r].start && k <= kRanges[r].start + kNumBackends)
      return kRuntimeNames[r][k - kRanges[r].start - 1].data();
  }
  const int alias = k - static_cast<int>(DispatchKey::Autograd);
  return alias >= 0 && k <= kLastKey ? kAliases[alias] : "UNKNOWN_TENSOR_TYPE_ID";
}

bool parse_key(std::string_view name, DispatchKey* key) {
  for (int k = 0; k <= kLastKey; ++k)
    if (key_name(static_cast<DispatchKey>(k)) == name) {
      *key = static_cast<DispatchKey>(k);
      return true;
    }
  *key = DispatchKey::Undefined;
  return false;
}

KeyParts key_parts(DispatchKey runtime_key) {
  const int k = static_cast<int>(runtime_key);
  if (k < kNumFunctionalities) return {runtime_key, 0};
  for (const Range& r : kRanges)
    if (k > r.start && k <= r.start + kNumBackends) return {r.functionality, k - r.start};
  return {DispatchKey::Undefined, 0};
}

DispatchKey runtime_key(DispatchKey functionality, int backend) {
  if (!is_per_backend(functionality)) return functionality;
  if (backend == 0) return DispatchKey::Undefined;
  for (const Range& r : kRanges)
    if (r.functionality == functionality) return static_cast<DispatchKey>(r.start + backend);
  return DispatchKey::Undefined;
}

}  // namespace tn
