// The calls of MPI in use, as the plug-in plugins/mpi_plugin.cc offers them: plain functions, so
// that only the plug-in is built with MPI's headers and needs its library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

/// A call that returns text returns null on success; otherwise the text is the error, and is valid
/// until the thread's next call. Only one thread may call at a time.
struct MpiCalls {
  /// True from start() to end().
  bool (*started)();
  /// Joins the processes that mpirun has started, and waits for all of them.
  const char* (*start)();
  /// Ends MPI in this process, and waits until all processes do.
  const char* (*end)();
  int (*rank)();
  int (*size)();
  /// Gives every process the `bytes` bytes of each process, in the order of ranks. Returns once all
  /// processes have called it.
  const char* (*exchange)(const void* own, int bytes, void* all);

  /// Makes the group of these ranks, which ascend. Returns when all of them have called it.
  const char* (*make_group)(const int* ranks, int count, void** group);
  void (*free_group)(void* group);

  // The following calls only begin an operation, which borrows the memory until test() says that it
  // is done. The members of a group make the same calls in the same order.
  const char* (*begin_meet)(void* group, void** request);
  /// Replaces the numbers by their sums, with the same bits in each process.
  const char* (*begin_sum)(void* group, float* numbers, int count, void** request);
  /// Gathers counts[rank] elements of each member at element begins[rank] of `all`.
  const char* (*begin_gather)(void* group, const void* own, void* all, const int* counts,
                              const int* begins, int element_bytes, void** request);
  /// Continues the request, and frees it when it is done.
  const char* (*test)(void* request, bool* done);
};

/// The name and the type of the plug-in's only function.
constexpr const char* kMpiPluginFunction = "paceline_mpi_calls";
using MpiPluginFunction = const MpiCalls* (*)();

}  // namespace paceline
