// Forward declarations of the runtime's types. Include this where a name is enough.
#pragma once
#include <cstdint>

namespace tn {

class Tensor;
class TensorImpl;
class Storage;
class StorageImpl;
class Scalar;
class Value;
class GeneratorImpl;
class Generator;
class KeySet;
class TensorIterator;
class FunctionSchema;
struct Arg;
struct OpInfo;
struct OpRow;
struct Device;
enum class ScalarType : int8_t;
enum class DeviceType : int8_t;
enum class Layout : int8_t;
enum class MemoryFormat : int8_t;
enum class DispatchKey : uint16_t;

}  // namespace tn
