// Collects the rows of sparse variables that a batch reads, in memory that is made once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/plan.h"

namespace paceline {

class RowCollector {
 public:
  /// `ids[i]` are the memories of reads[i].ids; they must outlive the collector.
  RowCollector(std::span<const RowReads> reads, std::span<const std::vector<TensorView>> ids);
  /// Returns the rows, whose unique ids ascend; they are valid until the next call. Allocates
  /// nothing. Throws kInvalidArgument naming an id that is no row.
  std::span<const RowSet> collect();

 private:
  struct Reads {
    std::int64_t rows;
    bool all;
    std::vector<TensorView> ids;
    std::vector<std::int32_t> unique;  // has room for all ids
  };
  std::size_t unite(Reads& reads);

  std::vector<Reads> reads_;
  std::vector<RowSet> sets_;
};

}  // namespace paceline
