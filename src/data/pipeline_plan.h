// A plan describes a pipeline: its source, its stages and their numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/record_cache.h"
#include "data/record_order.h"
#include "paceline/data.h"

namespace paceline {

struct PipelinePlan {
  /// A function, or a cache of what the stages before it make.
  struct Stage {
    std::string name;
    std::function<void(Example&)> function;
    std::shared_ptr<RecordCache> cache;
  };
  std::shared_ptr<const RecordSource> source;
  OrderOptions order;
  std::optional<std::int64_t> epochs = 1;
  std::vector<Stage> stages;
  // The last stage.
  Shape shape;
  std::string into_name;
  std::function<void(Example&, std::span<float>)> into;
  bool as_finished = false;  // some stage hands on its records as they are finished
  bool shared_out = false;   // the job shares out its records
  std::int64_t batch = 0;    // 0: not given
  LastBatch last = LastBatch::kDrop;
  int prefetch = 2;
  int threads = 0;
  std::int64_t max_bad = 0;
  std::function<void(const std::string&)> on_bad;

  std::int64_t records() const;  // of the source
};

}  // namespace paceline
