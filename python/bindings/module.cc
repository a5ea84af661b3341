// The module paceline._paceline. Users of Python reach it through python/paceline/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "kernels/device_kind.h"
#include "paceline/version.h"
#include "python/bindings/bindings.h"

namespace paceline::python {
namespace {

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceKind& kind : device_kinds()) {
    if (!kind.is_oracle) names.emplace_back(kind.name);
  }
  return names;
}

}  // namespace

NB_MODULE(_paceline, module) {
  module.doc() = "The library of Paceline as Python sees it; `import paceline` gives its names.";
  module.def("version", &version_and_commit,
             "Version and commit of the library, such as \"0.1.0 ecfe3c1\".");
  module.def(
      "version_text", &version_text,
      "The lines that `paceline version` prints: version, compiler, processor, devices, links.");
  module.def("devices", &device_names,
             "The kinds of devices that this library computes on, such as [\"cpu\", \"sim\"].");
  bind_errors(module);
  bind_rules(module);
  bind_strategy(module);
  bind_checkpoint(module);
  bind_store(module);
}

}  // namespace paceline::python
