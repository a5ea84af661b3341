// The time to pack contributions for travel.
#pragma once

#include "params/wire/travelling_type.h"

namespace paceline {

/// The functions return the core seconds per byte of float32 values: to pack the values for travel,
/// and to widen them again. The numbers are constants, measured on one core of an AMD EPYC (Zen 5)
/// in blocks that lie in its cache.
double pack_s_per_byte(const ContributionForm& form, bool error_feedback);
double unpack_s_per_byte(const ContributionForm& form);

}  // namespace paceline
