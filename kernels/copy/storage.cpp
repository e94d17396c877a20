// Operators that give an existing tensor another size or another storage.
#include "generated/slots/copy.h"
#include "runtime/autograd/accumulator.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn::native {
namespace {

void check_resizable(const Tensor& self) {
  TN_CHECK(!self.requires_grad() || self->is_inference(), "cannot resize variables that require grad");
}

// Upstream counts a resize as a write only where it changes something.
void changed_geometry(const Tensor& self) {
  if (!self->is_inference()) self->bump_version();
  forget_accumulator(self);
}

void resize(const Tensor& self, IntView size, std::optional<MemoryFormat> format) {
  check_resizable(self);
  TN_CHECK(format != MemoryFormat::Preserve, "Unsupported memory format", memory_format_name(MemoryFormat::Preserve));
  if (!format && self.sizes() == size) return;  // keeps its strides
  resize_impl(*self.impl(), size, format.value_or(MemoryFormat::Contiguous));
  changed_geometry(self);
}

// An empty list of strides asks for contiguous ones.
const Tensor& point_at(const Tensor& self, const Storage& source, int64_t offset, IntView size, IntView stride) {
  DimVector strides(size.size());
  if (stride.empty()) contiguous_strides(size, strides.data());
  else
    TN_CHECK(size.size() == stride.size(), "unequal size length (", size.size(), ") and stride length (", stride.size(),
             ")");
  if (!stride.empty()) strides = DimVector(stride);
  TN_CHECK(source->device().type == self.device().type, "Attempted to set the storage of a tensor on device \"",
           self.device().str(), "\" to a storage on different device \"", source->device().str(),
           "\".  This is no longer allowed; the devices must match.");
  TN_CHECK(offset >= 0, "Tensor: invalid storage offset ", offset);
  for (const int64_t s : strides)
    TN_CHECK(s >= 0, "Storage size calculation overflowed with sizes=", size, " and strides=", IntView(strides));
  const DimVector sizes(size);  // may be self's own
  const size_t bytes = storage_bytes(sizes, strides, offset, self.itemsize());
  const Storage kept = source;
  if (bytes > kept->nbytes()) kept->resize(bytes);
  self->set_storage(kept);
  self->set_geometry(sizes, strides, offset);
  forget_accumulator(self);
  return self;
}

}  // namespace

const Tensor& resize_(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  resize(self, size, memory_format);
  return self;
}
const Tensor& resize_as_(const Tensor& self, const Tensor& the_template, std::optional<MemoryFormat> memory_format) {
  check_resizable(self);
  const bool preserve = memory_format == MemoryFormat::Preserve;
  if (!(self.sizes() == the_template.sizes())) {
    resize_impl(*self.impl(), the_template.sizes());
    changed_geometry(self);
  }
  if (memory_format)
    self->set_sizes_contiguous(DimVector(the_template.sizes()),
                               preserve ? suggest_memory_format(the_template) : *memory_format);
  return self;
}
const Tensor& _resize_output_(const Tensor& self, IntArrayRef size, Device device) {
  TN_CHECK(self.device().type == device.type, "out Tensor doesn't have the correct device set");
  resize_output(self, size);
  return self;
}

const Tensor& set_(const Tensor& self) {
  const int64_t none[] = {0}, one[] = {1};
  return point_at(self, Storage::allocate(0, self.device()), 0, none, one);
}
const Tensor& set__source_Storage(const Tensor& self, const Storage& source) {
  const int64_t size[] = {static_cast<int64_t>(source->nbytes() / self.itemsize())}, one[] = {1};
  return point_at(self, source, 0, size, one);
}
const Tensor& set__source_Storage_storage_offset(const Tensor& self, const Storage& source, int64_t storage_offset,
                                                 IntArrayRef size, IntArrayRef stride) {
  return point_at(self, source, storage_offset, size, stride);
}
const Tensor& set__source_Tensor(const Tensor& self, const Tensor& source) {
  TN_CHECK(self.dtype() == source.dtype(), "Could not set tensor of type ", element_type_name(source.dtype()),
           " to a tensor of type ", element_type_name(self.dtype()));
  if (self.is_same(source)) return self;
  return point_at(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

bool is_pinned(const Tensor&, std::optional<Device>) { return false; }
bool is_set_to(const Tensor& self, const Tensor& tensor) {
  return self.storage() == tensor.storage() && self.storage_offset() == tensor.storage_offset() &&
         self.sizes() == tensor.sizes() && self.strides() == tensor.strides();
}

}  // namespace tn::native
