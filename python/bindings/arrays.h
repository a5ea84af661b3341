// Views of Python's arrays (NumPy's, and all that speak DLPack), and arrays over memory of ours.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>

#include "paceline/tensor.h"

namespace paceline::python {

/// Row-major values in the host's memory, and what keeps them there.
struct HostArray {
  TensorView view;
  nanobind::ndarray<nanobind::ro> owner;
};

/// The values of an array of NumPy, or of any framework's by DLPack, where they lie; an array whose
/// rows do not follow each other is copied. `what` begins the message of an error ("gradient of
/// 'w'"). Throws kInvalidArgument for what is no such array, for one on another device than the
/// CPU, and for a type of elements that Paceline does not have.
HostArray host_array(nanobind::handle array, const std::string& what);
/// "float32 (3,4)"
std::string text_of(DType dtype, const Shape& shape);
/// Throws kInvalidArgument unless `given` is of this type and shape, naming both sides.
void check_alike(const TensorView& given, DType dtype, const Shape& shape, const std::string& what);

/// NumPy's array over this memory, which `owner` keeps for as long as the array lives. bfloat16 is
/// that of ml_dtypes.
nanobind::object numpy_array(const TensorView& view, nanobind::handle owner, bool read_only);
/// An object that gives this memory by DLPack, to any framework that takes it.
nanobind::object dlpack_array(const TensorView& view, nanobind::handle owner);

/// A Python object that owns the tensor's buffer.
nanobind::object owner_of(const Tensor& tensor);

}  // namespace paceline::python
