// The model fetch measures what it costs to read one small variable from a ps in each step
// (TensorFlow issue 11411).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "paceline/graph.h"

namespace paceline::models {

struct FetchShape {
  std::int64_t features, batch, hidden;
  std::string str() const;      // "128,32,256"
  std::string section() const;  // the section of the report with its times
  bool operator==(const FetchShape&) const = default;
};

/// X (batch,features) · W (features,hidden), once with a shared variable W and once with a local
/// one.
struct FetchGraph {
  Value x;
  Value remote_w, own_w;  // a variable, and a local one
  Value remote, own;      // the products
};

/// The three shapes of the TensorFlow issue, or one shape when --features, --batch or --hidden is
/// given.
std::vector<FetchShape> fetch_shapes(const Settings& settings);
FetchGraph build_fetch(Graph& graph, const FetchShape& shape);

const Model& fetch_model();

}  // namespace paceline::models
