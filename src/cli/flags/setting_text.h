// The texts of settings that --help and errors share.
#pragma once

#include <string>

#include "paceline/program.h"

namespace paceline {

/// Returns the value in the form that --set takes: "512", "0.001", "1", "text".
std::string setting_text(const SettingValue& value);
/// Returns the range of a number: "from 1 to 64", "from 1 on", "of at most 64"; empty if every
/// number is allowed.
std::string range_text(const AnySetting& setting);
/// Returns the allowed values: "must be a whole number from 1 on".
std::string allowed_text(const AnySetting& setting);
/// The name of the setting's flag: "--learning-rate".
std::string flag_of(const AnySetting& setting);

}  // namespace paceline
