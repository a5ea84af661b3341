// Views of Python's arrays (NumPy's, and all that support DLPack), and arrays over Paceline's
// memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "paceline/tensor.h"

namespace paceline::python {

/// Row-major values in the host's memory, and the object that keeps them there.
struct HostArray {
  TensorView view;
  nanobind::ndarray<nanobind::ro> owner;
};

/// Returns the values of an array of NumPy, or of any framework that supports DLPack, without a
/// copy; only an array whose rows are not contiguous is copied. `what` begins the message of an
/// error ("gradient of 'w'"). Throws kInvalidArgument for an object that is no such array, for an
/// array on a device other than the CPU, and for a type of elements that Paceline does not have.
HostArray host_array(nanobind::handle array, const std::string& what);
/// "float32 (3,4)"
std::string text_of(DType dtype, const Shape& shape);
/// Throws kInvalidArgument unless `given` is of this type and shape, naming both sides.
void check_alike(const TensorView& given, DType dtype, const Shape& shape, const std::string& what);

/// Returns NumPy's array over this memory, which `owner` keeps valid for as long as the array
/// lives. bfloat16 is the type of ml_dtypes.
nanobind::object numpy_array(const TensorView& view, nanobind::handle owner, bool read_only);
/// Returns an object that offers this memory through DLPack to any framework that supports it.
nanobind::object dlpack_array(const TensorView& view, nanobind::handle owner);

/// Returns a Python object that owns the tensor's buffer.
nanobind::object owner_of(const Tensor& tensor);

}  // namespace paceline::python
