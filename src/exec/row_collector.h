// The rows of sparse variables that a batch reads: unique and ascending, in memory made once.
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
  /// Valid until the next call. Allocates nothing. Throws kInvalidArgument naming an id that is no
  /// row.
  std::span<const RowSet> collect();

 private:
  struct Reads {
    std::int64_t rows;
    bool all;
    std::vector<TensorView> ids;
    std::vector<std::int32_t> unique;  // as long as all ids
  };
  std::size_t unite(Reads& reads);

  std::vector<Reads> reads_;
  std::vector<RowSet> sets_;
};

}  // namespace paceline
