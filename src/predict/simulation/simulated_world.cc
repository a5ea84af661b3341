#include "predict/simulation/simulated_world.h"

#include <algorithm>
#include <cmath>

#include "base/row_count.h"
#include "predict/simulation/simulated_ps.h"
#include "predict/simulation/simulated_worker.h"

namespace paceline {
namespace {

std::vector<bool> mapped_variables(const SimulatedStep& step, const std::vector<Piece>& pieces) {
  std::vector<bool> mapped;
  for (std::size_t v = 0; v < step.specs.size(); ++v) {
    mapped.push_back(step.specs[v].sparse || can_be_joined(step.specs, pieces, VariableId(v)));
  }
  return mapped;
}

}  // namespace

SimulatedWorld::SimulatedWorld(const SimulatedJob& the_job, const SimulatedStep& shared,
                               const AggregationSpec& how, VirtualTime& the_time,
                               Transport& the_transport)
    : job(the_job),
      step(shared),
      aggregation(how),
      pieces(place_variables(shared.specs, std::max(1, int(the_job.cluster.ps.size())))),
      mapped(mapped_variables(shared, pieces)),
      plans({shared.need_order}),
      time(the_time),
      transport(the_transport) {}

SimulatedWorld::~SimulatedWorld() = default;

double SimulatedWorld::part_of(const Piece& piece) const {
  return double(piece.rows) / double(row_count(spec(piece.variable).shape));
}

std::int64_t SimulatedWorld::rows_named(const Piece& piece) const {
  const double rows = double(use(piece.variable).most_rows) * part_of(piece);
  return std::min(piece.rows, std::max<std::int64_t>(1, std::llround(rows)));
}

}  // namespace paceline
