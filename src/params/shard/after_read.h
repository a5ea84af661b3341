// A change that a ps makes to a variable by itself, without a contribution.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

namespace paceline {

/// Changes float32 values of a variable once a worker has read them: after the reply to a pull, or
/// when a fetch step has read them in shared memory. `time` is the number of earlier reads of the
/// same piece. The function is called for one part of the values after the other, on any thread,
/// and must not block.
using AfterRead = std::function<void(std::int64_t time, std::span<float> values)>;

/// The changes, by the name of their variable.
using AfterReads = std::map<std::string, AfterRead>;

}  // namespace paceline
