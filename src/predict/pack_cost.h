// The time that contributions take to be made fit to travel.
#pragma once

#include "params/wire/travelling_type.h"

namespace paceline {

/// The seconds of a core for each byte of float32 that is made to travel, and made float32 of
/// again. Constants, measured on one core of an AMD EPYC (Zen 5) in blocks that lie in its cache.
double pack_s_per_byte(const ContributionForm& form, bool error_feedback);
double unpack_s_per_byte(const ContributionForm& form);

}  // namespace paceline
