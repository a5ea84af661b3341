// Gradient accumulation: a store over another one, to which the mean of several steps'
// contributions goes as the contribution of one step.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "params/joined_strategy.h"

namespace paceline {

/// Each plan that updates variables has its own windows of `steps` train steps, from 2 on.
/// - A train step of the store below is the last step of a window, with that one's learning rates
///   and the examples of all of them; the global step and the rules count those. The other steps
///   are steps of kind kFetch for the store below: each reads values as new as any train step does.
///   A window of one worker alone so reads the same values throughout.
/// - Contributions are summed in memory of this process. With clipping the store says
///   NormBy::kStore and clips the mean by its norm, unless the store below computes one itself.
/// - The control counts own steps, `steps` of them for each of the job below. A checkpoint has
///   nothing of a window that is under way: training that resumes from it begins a window anew, at
///   an own step that is a multiple of `steps`.
/// `pool` may be null; it must outlive the store, and the store what bind() gives.
JoinedStrategy accumulate(JoinedStrategy below, int steps, ThreadPool* pool);

}  // namespace paceline
