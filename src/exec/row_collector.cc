#include "exec/row_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "paceline/error.h"

namespace paceline {

RowCollector::RowCollector(std::span<const RowReads> reads,
                           std::span<const std::vector<TensorView>> ids) {
  for (std::size_t i = 0; i < reads.size(); ++i) {
    Reads own{reads[i].rows, reads[i].all, ids[i], {}};
    std::int64_t most = own.all ? own.rows : 0;
    for (const TensorView& view : own.ids) most += view.shape.elements();
    own.unique.resize(std::size_t(most));
    if (own.all) std::iota(own.unique.begin(), own.unique.end(), 0);
    reads_.push_back(std::move(own));
    sets_.push_back({reads[i].variable, {}});
  }
}

std::span<const RowSet> RowCollector::collect() {
  for (std::size_t i = 0; i < reads_.size(); ++i) {
    const std::size_t size = reads_[i].all ? reads_[i].unique.size() : unite(reads_[i]);
    sets_[i].ids = {reads_[i].unique.data(), size};
  }
  return sets_;
}

std::size_t RowCollector::unite(Reads& reads) {
  auto end = reads.unique.begin();
  for (const TensorView& ids : reads.ids) {
    const std::int32_t* first = ids.as<std::int32_t>();
    end = std::copy(first, first + ids.shape.elements(), end);
  }
  std::sort(reads.unique.begin(), end);
  end = std::unique(reads.unique.begin(), end);
  const std::size_t size = std::size_t(end - reads.unique.begin());
  if (size > 0 && (reads.unique[0] < 0 || reads.unique[size - 1] >= reads.rows)) {
    const std::int32_t wrong = reads.unique[0] < 0 ? reads.unique[0] : reads.unique[size - 1];
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[embedding_lookup] id {} is outside [0,{})", wrong, reads.rows));
  }
  return size;
}

}  // namespace paceline
