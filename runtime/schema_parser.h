// Reads operator schemas: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
#pragma once

#include <string>
#include <string_view>

#include "runtime/schema.h"

namespace tn {

// RuntimeError with the place marked in the text where it can't be read. Without allow_typevars an unknown lower-case
// word is an error, as in a user's definition; with it, it is a type variable, as in TorchScript's own schemas.
SchemaRef parse_schema(std::string_view text, bool allow_typevars = true);

// Set by the bindings: whether Python registered a class under this dotted name, so that schemas may take its objects.
using OpaqueTypeHook = bool (*)(std::string_view name);
extern constinit OpaqueTypeHook opaque_type_hook;

struct OperatorName {
  std::string name;
  std::string overload_name;
};
// "aten::add.Tensor" alone; a schema is an error.
OperatorName parse_operator_name(std::string_view text);

}  // namespace tn
