// How far the cores of this machine are from each other.
#pragma once

namespace paceline {

/// Measures the seconds in which a word of memory gets from one core to another: the mean of
/// neighbours among the first eight cores, in about 1 ms each. 0 with one core, or where
/// other processes keep them busy. It is constant on most machines; a virtual machine whose cores
/// are moved while it runs has one where they share a cache and another where they do not, and with
/// it other rates of memory and of TCP.
double core_trip_seconds();

/// True when two of these are of one placement of the cores, or one of them is not known.
bool is_same_placement(double one_trip, double other_trip);

}  // namespace paceline
