// The check of the hello by which a worker of an all-reduce recognises another worker.
#pragma once

#include <string>

#include "params/wire/message.h"

namespace paceline {

/// Returns why the worker that sent the hello `theirs` may not connect with the one whose hello
/// would be `ours`; empty: it may. `Hello::ps` is the index of the worker that the sender takes the
/// receiver for.
std::string greeting_refusal(const Hello& ours, const Hello& theirs);

}  // namespace paceline
