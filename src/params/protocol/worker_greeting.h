// The messages by which two workers of an all-reduce recognise each other.
#pragma once

#include <string>

#include "params/wire/message.h"

namespace paceline {

/// Returns why the worker that sent the hello `theirs` may not connect with the one whose hello
/// would be `ours`; empty: it may. `Hello::ps` is the index of the worker that the sender takes the
/// receiver for.
std::string greeting_refusal(const Hello& ours, const Hello& theirs);

}  // namespace paceline
