// The parts of the module paceline._paceline. Each function adds names to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace paceline::python {

void bind_errors(nanobind::module_& module);
void bind_rules(nanobind::module_& module);
void bind_strategy(nanobind::module_& module);
void bind_checkpoint(nanobind::module_& module);
void bind_store(nanobind::module_& module);

}  // namespace paceline::python
