// A table with an entry for each value of a graph.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// Holds an entry, at first T(), for each value that the graph has when the table is made. The
/// entries are allocated from `memory`, and so is what they hold if T takes a pmr allocator.
template <typename T>
class ByValue {
 public:
  explicit ByValue(const Graph& graph,
                   std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : entries_(memory) {
    std::size_t values = 0;
    first_.reserve(graph.nodes().size());
    for (const auto& node : graph.nodes()) {
      first_.push_back(values);
      values += node->outputs().size();
    }
    entries_.resize(values);
  }

  T& operator[](Value value) { return entries_[index_of(value)]; }
  const T& operator[](Value value) const { return entries_[index_of(value)]; }

 private:
  std::size_t index_of(Value value) const {
    return first_[std::size_t(value.node().id())] + std::size_t(value.output());
  }

  std::vector<std::size_t> first_;  // by node id: index of the entry of output 0
  std::pmr::vector<T> entries_;
};

}  // namespace paceline
