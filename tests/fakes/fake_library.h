// Calls of the fake driver (fake_cuda_driver.cc) for the fakes of NVIDIA's other libraries. The
// driver must be loaded first.
#pragma once

#include <cstddef>
#include <functional>

namespace paceline::testing {

/// Queues work on the stream; it runs, in the stream's order, when somebody waits for the stream.
/// An exception of the work becomes the driver's error from then on. Returns the driver's status.
int push_on_fake_gpu(void* stream, std::function<void()> work);
/// True if these bytes lie in one block of a device's memory.
bool fake_gpu_holds(const void* begin, std::size_t bytes);

/// Returns the bytes of host memory that are pinned by cuMemHostRegister.
extern "C" std::size_t bytes_pinned_by_fake_gpu();

}  // namespace paceline::testing
