// What the files of StorageBase share.
#pragma once
#include "bindings/objects.h"

namespace tn::py {

// The storage of an UntypedStorage object, alive while the object is.
StorageImpl& storage_of(PyObject* o);
// The same, for a method that reads or writes its memory.
StorageImpl& with_memory(PyObject* self, const char* method);
// Finds torch.UntypedStorage. False with an exception set.
bool storage_class_ready();
void swap_bytes(void* data, size_t nbytes, size_t element_size);

extern PyMethodDef storage_sharing_methods[];  // storage_sharing.cpp
extern PyMethodDef storage_file_methods[];     // storage_file.cpp

}  // namespace tn::py
