// How many threads of this machine can run at once.
#pragma once

namespace paceline {

/// At least 1, where the system does not say.
int cores_of_machine();

}  // namespace paceline
