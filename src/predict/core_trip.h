// How far apart the cores of this machine are.
#pragma once

namespace paceline {

/// Measures the seconds in which a word of memory gets from one core to another: the mean over
/// neighbours among the first eight cores. Takes about 1 ms for each pair. Returns 0 if there is
/// only one core, or if other processes keep the cores busy.
///
/// The result is constant on most machines. A virtual machine may move its cores while it runs: the
/// result then depends on whether the cores share a cache, and so do the machine's rates of memory
/// and TCP.
double core_trip_seconds();

/// True if the two trip times are so close that the cores were in the same places (shared cache or
/// not) in both measurements, or if one of the times is unknown.
bool is_same_placement(double one_trip, double other_trip);

}  // namespace paceline
