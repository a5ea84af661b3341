// Gradient accumulation: a store over another one. The mean of several steps' contributions goes to
// the store below as the contribution of one step.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "params/joined_strategy.h"

namespace paceline {

/// Each plan that updates variables has its own windows of `steps` train steps; `steps` is at least
/// 2.
/// - The last step of a window is a train step of the store below, with that step's learning rates
///   and the examples of all steps of the window. The global step and the rules count these train
///   steps.
/// - The other steps are steps of kind kFetch for the store below: each reads values as new as any
///   train step does. So with one worker, all steps of a window read the same values.
/// - Contributions are summed in memory of this process. With clipping the store says
///   NormBy::kStore and clips the mean by its norm, unless the store below computes a norm itself.
/// - The control counts own steps; the job below counts one step for every `steps` own steps. A
///   checkpoint does not have a window under way: training that resumes begins a window anew, at an
///   own step that is a multiple of `steps`.
/// `pool` may be null; it must outlive the store. The store must outlive the result of bind().
JoinedStrategy accumulate(JoinedStrategy below, int steps, ThreadPool* pool);

}  // namespace paceline
