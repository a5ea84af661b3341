// The flags and the data of a job on which its workers must agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "paceline/cluster.h"

namespace paceline {

/// SessionOptions::data_names, shared_records and agreed.
struct AgreedData {
  std::map<std::string, std::vector<std::string>> names = {};
  std::int64_t records = 0;
  std::map<std::string, std::string> others = {};
};

/// The flags that decide what a job computes, and the names of its data's numbers, with their
/// values: "--accumulate\t2", "number 3 of the classes\t'cat'". With --shard dynamic
/// also the number of records. Names that are too many have digests in their place. A worker says
/// all of this when it joins.
std::vector<std::string> agreed_flags(const Cluster& cluster, std::uint64_t seed,
                                      const AgreedData& data);

}  // namespace paceline
