// paceline::Error in Python.
#pragma once

#include <string>

#include "paceline/error.h"

namespace paceline::python {

/// A name that a mapping does not have; in Python this is a KeyError.
class NoSuchName : public Error {
 public:
  using Error::Error;
};

}  // namespace paceline::python
