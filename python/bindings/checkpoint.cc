// Checkpoints and safetensors files, read as arrays.
#include "checkpoint/checkpoint_reader.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "paceline/error.h"
#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/errors.h"

namespace nb = nanobind;

namespace paceline::python {
namespace {

// A CheckpointReader with deleted copy functions, so that nanobind knows that it cannot be copied.
struct OpenCheckpoint : CheckpointReader {
  explicit OpenCheckpoint(const std::string& path) : CheckpointReader(path) {}
  OpenCheckpoint(const OpenCheckpoint&) = delete;
  OpenCheckpoint& operator=(const OpenCheckpoint&) = delete;
};

std::vector<std::string> names_in(const OpenCheckpoint& reader) {
  std::vector<std::string> names;
  for (const SavedVariable& variable : reader.index().variables) names.push_back(variable.name);
  return names;
}

const SavedVariable& variable_of(const OpenCheckpoint& reader, const std::string& name) {
  try {
    return reader.index().variable(name);
  } catch (const Error& error) {
    throw NoSuchName(error.code(), error.what());
  }
}

// Reads a variable without the GIL, since this takes as long as the disk does.
SavedRows read(const OpenCheckpoint& reader, const std::string& name) {
  variable_of(reader, name);
  const nb::gil_scoped_release released;
  return reader.read(name);
}

nb::object array_of(const Tensor& tensor) {
  return numpy_array(tensor.view(), owner_of(tensor), false);
}

nb::dict slots_of(const OpenCheckpoint& reader, const std::string& name) {
  const SavedRows rows = read(reader, name);
  const SavedVariable& variable = variable_of(reader, name);
  nb::dict slots;
  for (std::size_t i = 0; i < rows.slots.size(); ++i)
    slots[variable.slots[i].name.c_str()] = array_of(rows.slots[i]);
  return slots;
}

// Returns a reader of the checkpoint that the path names, and a line about each newer checkpoint
// that is not whole.
nb::tuple open_checkpoint(const std::string& path) {
  std::vector<std::string> said;
  std::unique_ptr<OpenCheckpoint> reader;
  {
    const nb::gil_scoped_release released;
    const ChosenCheckpoint chosen = find_checkpoint(path, WholeCheck::kSizes);
    for (const FoundCheckpoint& torn : chosen.passed_over) said.push_back(passed_over_text(torn));
    reader = std::make_unique<OpenCheckpoint>(chosen.path);
  }
  return nb::make_tuple(nb::cast(reader.release(), nb::rv_policy::take_ownership), said);
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  nb::class_<OpenCheckpoint>(module, "CheckpointReader", "An open checkpoint.")
      .def_prop_ro("path", [](const OpenCheckpoint& reader) { return reader.path(); })
      .def_prop_ro("step",
                   [](const OpenCheckpoint& reader) -> std::optional<std::int64_t> {
                     const std::int64_t step = reader.index().global_step;
                     if (step == CheckpointIndex::kNoStep) return std::nullopt;
                     return step;
                   })
      .def_prop_ro(
          "notes",
          [](const OpenCheckpoint& reader) {
            nb::dict notes;
            for (const auto& [key, value] : reader.index().notes) notes[key.c_str()] = value;
            return notes;
          },
          nb::sig("def notes(self) -> dict[str, str]"))
      .def("names", names_in)
      .def(
          "describe",
          [](const OpenCheckpoint& reader, const std::string& name) {
            const SavedVariable& variable = variable_of(reader, name);
            nb::list dims;
            for (const std::int64_t dim : variable.shape.dims()) dims.append(dim);
            return nb::make_tuple(std::string(name_of(variable.dtype)), nb::tuple(dims),
                                  variable.step_rule());
          },
          nb::sig("def describe(self, name: str) -> tuple[str, tuple[int, ...], str]"))
      .def(
          "array",
          [](const OpenCheckpoint& reader, const std::string& name) {
            return array_of(read(reader, name).value);
          },
          nb::sig("def array(self, name: str) -> numpy.ndarray"))
      .def(
          "dlpack",
          [](const OpenCheckpoint& reader, const std::string& name) {
            const Tensor tensor = read(reader, name).value;
            return dlpack_array(tensor.view(), owner_of(tensor));
          },
          nb::sig("def dlpack(self, name: str) -> typing.Any"))
      .def("slots", slots_of, nb::sig("def slots(self, name: str) -> dict[str, numpy.ndarray]"));

  module.def("open_checkpoint", open_checkpoint, nb::arg("path"),
             nb::sig("def open_checkpoint(path: str) -> tuple[CheckpointReader, list[str]]"));
}

}  // namespace paceline::python
