// The texts of settings that --help and errors share.
#pragma once

#include <string>

#include "paceline/program.h"

namespace paceline {

/// The value as --set takes it: "512", "0.001", "1", "text".
std::string setting_text(const SettingValue& value);
/// The range of a number: "from 1 to 64", "from 1 on", "of at most 64". It is empty when every
/// number is allowed.
std::string range_text(const AnySetting& setting);
/// The values that are allowed: "must be a whole number from 1 on".
std::string allowed_text(const AnySetting& setting);
/// The name of the setting's flag: "--learning-rate".
std::string flag_of(const AnySetting& setting);

}  // namespace paceline
