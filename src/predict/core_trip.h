// How far apart the cores of this machine are.
#pragma once

namespace paceline {

/// Measures the seconds in which a word of memory gets from one core to another: the mean over
/// neighbours among the first eight cores, about 1 ms for each pair. Returns 0 with one core, or if
/// other processes keep the cores busy. The time is constant on most machines. A virtual machine
/// whose cores move while it runs has one time if they share a cache and another if they do not,
/// and its rates of memory and TCP differ with it.
double core_trip_seconds();

/// True if both times belong to one placement of the cores, or if one of them is unknown.
bool is_same_placement(double one_trip, double other_trip);

}  // namespace paceline
