// Views of Python's arrays, of NumPy or of any framework that supports DLPack, and Python's arrays
// over Paceline's memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "paceline/tensor.h"

namespace paceline::python {

/// Row-major values in the host's memory, and the Python array that keeps this memory valid.
struct HostArray {
  TensorView view;
  nanobind::ndarray<nanobind::ro> owner;
};

/// Returns the values of an array of NumPy, or of any framework that supports DLPack, without a
/// copy; only an array that is not contiguous in row-major order is copied. `what` begins the
/// message of an error ("gradient of 'w'"). Throws kInvalidArgument for an object that is no such
/// array, for an array on a device other than the CPU, and for a type of elements that Paceline
/// does not have.
HostArray host_array(nanobind::handle array, const std::string& what);
/// Returns a text such as "float32 (3,4)".
std::string text_of(DType dtype, const Shape& shape);
/// Throws kInvalidArgument, naming both sides, unless `given` has this type and shape.
void check_alike(const TensorView& given, DType dtype, const Shape& shape, const std::string& what);

/// Returns a NumPy array over this memory. The array keeps a reference to `owner`, which keeps the
/// memory valid. The type for bfloat16 is that of ml_dtypes.
nanobind::object numpy_array(const TensorView& view, nanobind::handle owner, bool read_only);
/// Returns an object that offers this memory through DLPack to any framework that supports it.
nanobind::object dlpack_array(const TensorView& view, nanobind::handle owner);

/// Returns a Python object that owns the tensor's buffer.
nanobind::object owner_of(const Tensor& tensor);

}  // namespace paceline::python
