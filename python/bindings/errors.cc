// Turns each paceline::Error into the exception of python/paceline/_errors.py that Python's users
// would catch, with the same message.
#include "python/bindings/errors.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <string_view>
#include <utility>

#include "paceline/error.h"
#include "python/bindings/bindings.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

// The names of all error codes in Python, in the order of the codes.
constexpr std::pair<const char*, ErrorCode> kCodes[] = {
    {"INVALID_ARGUMENT", ErrorCode::kInvalidArgument},
    {"USAGE", ErrorCode::kUsage},
    {"NOT_FOUND", ErrorCode::kNotFound},
    {"UNAVAILABLE", ErrorCode::kUnavailable},
    {"ABORTED", ErrorCode::kAborted},
    {"DEADLINE_EXCEEDED", ErrorCode::kDeadlineExceeded},
    {"CANCELLED", ErrorCode::kCancelled},
    {"DATA_LOSS", ErrorCode::kDataLoss},
    {"FAILED_PRECONDITION", ErrorCode::kFailedPrecondition},
    {"INTERNAL", ErrorCode::kInternal},
};

void raise(const Error& error, bool of_mapping) {
  const nb::object made = nb::module_::import_("paceline._errors")
                              .attr("error_of")(error.code(), error.what(), of_mapping);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const NoSuchName& error) {
    raise(error, true);
  } catch (const Error& error) {
    raise(error, false);
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::enum_<ErrorCode> codes(module, "ErrorCode",
                             "The kinds of failures, as Error.code gives them.");
  for (const auto& [name, code] : kCodes) codes.value(name, code);
  nb::register_exception_translator(translate);
}

}  // namespace paceline::python
