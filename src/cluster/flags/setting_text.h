// The texts of settings that --help and errors share.
#pragma once

#include <string>

#include "paceline/settings.h"

namespace paceline {

/// "512", "0.001", "1", "text": as --set takes it.
std::string setting_text(const SettingValue& value);
/// "from 1 to 64", "from 1 on", "of at most 64"; empty when every number is allowed.
std::string range_text(const Setting& setting);
/// "must be a whole number from 1 on".
std::string allowed_text(const Setting& setting);
/// "--learning-rate".
std::string flag_of(const Setting& setting);

}  // namespace paceline
