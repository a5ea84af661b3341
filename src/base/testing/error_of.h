// For tests: returns the error of a call that must fail.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "paceline/error.h"

namespace paceline {

/// The message of the Error that `call` throws; empty when it throws none.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Also expects that the error has this code.
template <typename Call>
std::string error_of(ErrorCode code, Call&& call) {
  return error_of([&] {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      throw;
    }
  });
}

}  // namespace paceline
