// paceline::Error in Python.
#pragma once

#include <string>

#include "paceline/error.h"

namespace paceline::python {

/// A name that a mapping does not have: KeyError in Python.
class NoSuchName : public Error {
 public:
  using Error::Error;
};

}  // namespace paceline::python
