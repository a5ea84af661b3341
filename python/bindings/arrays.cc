#include "python/bindings/arrays.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "paceline/error.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

using nb::dlpack::dtype_code;

struct TypePair {
  DType dtype;
  dtype_code code;
};
constexpr TypePair kTypes[] = {
    {DType::kFloat32, dtype_code::Float},   {DType::kFloat64, dtype_code::Float},
    {DType::kBFloat16, dtype_code::Bfloat}, {DType::kFloat16, dtype_code::Float},
    {DType::kInt32, dtype_code::Int},       {DType::kInt64, dtype_code::Int},
    {DType::kUInt8, dtype_code::UInt},      {DType::kBool, dtype_code::Bool},
};

nb::dlpack::dtype foreign_type(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.dtype == dtype) return {std::uint8_t(pair.code), std::uint8_t(8 * size_of(dtype)), 1};
  }
  throw Error(ErrorCode::kInternal, fmt::format("{} has no type in DLPack", name_of(dtype)));
}

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", what, why));
}

DType own_type(const nb::dlpack::dtype& dtype, nb::handle array, const std::string& what) {
  for (const TypePair& pair : kTypes) {
    if (foreign_type(pair.dtype) == dtype) return pair.dtype;
  }
  const std::string name = nb::str(nb::object(array.attr("dtype"))).c_str();
  refuse(what, fmt::format("Paceline has no elements of {}; it has float32, float64, bfloat16, "
                           "float16, int32, int64, uint8 and bool",
                           name));
}

bool is_numpy(nb::handle array) {
  return nb::isinstance(array, nb::module_::import_("numpy").attr("ndarray"));
}

// NumPy cannot export arrays of ml_dtypes' bfloat16 directly, but only as another type of the same
// size.
bool is_numpy_bfloat16(nb::handle array) {
  return is_numpy(array) && nb::cast<std::string>(nb::str(array.attr("dtype").attr("name"))) ==
                                std::string(name_of(DType::kBFloat16));
}

bool is_row_major(const nb::ndarray<nb::ro>& array) {
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != stride) return array.size() == 0;
    stride *= std::int64_t(array.shape(i));
  }
  return true;
}

Shape shape_of(const nb::ndarray<nb::ro>& array) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < array.ndim(); ++i) dims.push_back(std::int64_t(array.shape(i)));
  return Shape(dims);
}

constexpr const char* kWhatIsTaken =
    "give an array of NumPy, or of a framework that speaks DLPack, in the CPU's memory (of torch: "
    "tensor.detach())";

nb::ndarray<nb::ro> imported(nb::handle array, const std::string& what) {
  nb::ndarray<nb::ro> in;
  if (!nb::try_cast(array, in))
    refuse(what, fmt::format("{} is no array that can be read in place; {}",
                             nb::inst_name(array).c_str(), kWhatIsTaken));
  if (in.device_type() != nb::device::cpu::value)
    refuse(what, fmt::format("the array lies on another device than the CPU; {}", kWhatIsTaken));
  return in;
}

HostArray array_at(nb::handle array, const std::string& what) {
  const bool bfloat16 = is_numpy_bfloat16(array);
  const nb::object viewed = bfloat16 ? array.attr("view")("uint16") : nb::borrow(array);
  nb::ndarray<nb::ro> in = imported(viewed, what);
  const DType dtype = bfloat16 ? DType::kBFloat16 : own_type(in.dtype(), array, what);
  void* const data = const_cast<void*>(in.data());
  return {{data, dtype, shape_of(in)}, std::move(in)};
}

nb::object make_array(const TensorView& view, nb::handle owner, nb::dlpack::dtype dtype,
                      bool read_only, bool numpy) {
  std::vector<std::size_t> dims;
  for (const std::int64_t dim : view.shape.dims()) dims.push_back(std::size_t(dim));
  const auto cast = [&](auto array) {
    return nb::cast(array, nb::rv_policy::reference_internal, owner);
  };
  if (!numpy)
    return cast(
        nb::ndarray<nb::array_api>(view.data, dims.size(), dims.data(), owner, nullptr, dtype));
  if (read_only)
    return cast(
        nb::ndarray<nb::numpy, nb::ro>(view.data, dims.size(), dims.data(), owner, nullptr, dtype));
  return cast(nb::ndarray<nb::numpy>(view.data, dims.size(), dims.data(), owner, nullptr, dtype));
}

}  // namespace

HostArray host_array(nb::handle array, const std::string& what) {
  HostArray made = array_at(array, what);
  if (is_row_major(made.owner)) return made;
  const nb::object numpy = nb::module_::import_("numpy");
  return array_at(numpy.attr("ascontiguousarray")(numpy.attr("from_dlpack")(array)), what);
}

std::string text_of(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", name_of(dtype), shape.str());
}

void check_alike(const TensorView& given, DType dtype, const Shape& shape,
                 const std::string& what) {
  if (given.dtype == dtype && given.shape == shape) return;
  refuse(what, fmt::format("it is {}, and must be {}", text_of(given.dtype, given.shape),
                           text_of(dtype, shape)));
}

nb::object numpy_array(const TensorView& view, nb::handle owner, bool read_only) {
  if (view.dtype != DType::kBFloat16)
    return make_array(view, owner, foreign_type(view.dtype), read_only, true);
  const nb::object words = make_array(view, owner, nb::dtype<std::uint16_t>(), read_only, true);
  return words.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
}

nb::object dlpack_array(const TensorView& view, nb::handle owner) {
  return make_array(view, owner, foreign_type(view.dtype), false, false);
}

nb::object owner_of(const Tensor& tensor) {
  return nb::capsule(new Tensor(tensor),
                     [](void* owned) noexcept { delete static_cast<Tensor*>(owned); });
}

}  // namespace paceline::python
