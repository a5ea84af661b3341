// The calls of MPI in use, as the plug-in plugins/mpi_plugin.cc offers them: plain functions, so
// that only the plug-in is built with MPI's headers and needs its library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline {

/// Functions that return a text return null on success; otherwise the text is the error, valid
/// until the thread's next call. One thread calls at a time.
struct MpiCalls {
  /// True from start() to end().
  bool (*started)();
  /// Joins the processes that mpirun has started, and waits for all of them.
  const char* (*start)();
  /// Leaves the processes, and waits for all of them.
  const char* (*end)();
  int (*rank)();
  int (*size)();
  /// Gives each process the `bytes` of all, by rank. Returns when all have called it.
  const char* (*exchange)(const void* own, int bytes, void* all);

  /// Makes the group of these ranks, which ascend. Returns when all of them have called it.
  const char* (*make_group)(const int* ranks, int count, void** group);
  void (*free_group)(void* group);

  // The following calls only begin: test() tells when they end, and they borrow the memory until
  // then. The members of a group make the same calls in the same order.
  const char* (*begin_meet)(void* group, void** request);
  /// Replaces the numbers by their sums, with the same bits in each process.
  const char* (*begin_sum)(void* group, float* numbers, int count, void** request);
  /// Gathers counts[rank] elements of each member at place begins[rank]; both count elements.
  const char* (*begin_gather)(void* group, const void* own, void* all, const int* counts,
                              const int* begins, int element_bytes, void** request);
  /// Continues the request, and frees it when it is done.
  const char* (*test)(void* request, bool* done);
};

/// The name and the type of the plug-in's only function.
constexpr const char* kMpiPluginFunction = "paceline_mpi_calls";
using MpiPluginFunction = const MpiCalls* (*)();

}  // namespace paceline
