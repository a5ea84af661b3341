// The calls of MPI that are used, as the plug-in plugins/mpi_plugin.cc offers them: plain
// functions, so that nothing else is built with MPI's headers or needs its library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

/// Functions that return a text have failed with that message, which is valid until the thread's
/// next call, unless it is null. One thread calls at a time.
struct MpiCalls {
  /// True once start() was called, and end() was not.
  bool (*started)();
  /// Joins the processes that mpirun has started; waits for all of them.
  const char* (*start)();
  /// Leaves them; waits for all of them.
  const char* (*end)();
  int (*rank)();
  int (*size)();
  /// Gives each process the `bytes` of all, by rank. Returns when all have called it.
  const char* (*exchange)(const void* own, int bytes, void* all);

  /// Makes the group of these ranks, which ascend. Returns when all of them have called it.
  const char* (*make_group)(const int* ranks, int count, void** group);
  void (*free_group)(void* group);

  // What follows only begins; test() tells its end, and the memory is borrowed until then. The
  // members of a group make the same calls in the same order.
  const char* (*begin_meet)(void* group, void** request);
  /// Replaces the numbers by their sums, with the same bits in each process.
  const char* (*begin_sum)(void* group, float* numbers, int count, void** request);
  /// Gathers counts[rank] elements of each member at the place begins[rank], in elements.
  const char* (*begin_gather)(void* group, const void* own, void* all, const int* counts,
                              const int* begins, int element_bytes, void** request);
  /// Goes on with the request. When it is done it is forgotten.
  const char* (*test)(void* request, bool* done);
};

/// The name and the type of the plug-in's only function.
constexpr const char* kMpiPluginFunction = "paceline_mpi_calls";
using MpiPluginFunction = const MpiCalls* (*)();

}  // namespace paceline
