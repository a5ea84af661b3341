#include "graph/views.h"

#include "base/buffer.h"
#include "paceline/op.h"

namespace paceline {
namespace {

std::int64_t first_element(const Node& node, int output) {
  return node.op().view ? node.op().view(node, output) : -1;
}

}  // namespace

bool is_view(const Node& node) {
  if (!node.op().view) return false;
  for (int i = 0; i < int(node.outputs().size()); ++i) {
    if (first_element(node, i) < 0 || view_offset(node, i) % kBufferAlignment != 0) return false;
  }
  return true;
}

std::size_t view_offset(const Node& node, int output) {
  return std::size_t(first_element(node, output)) * size_of(node.input(0).type().dtype);
}

bool is_reshaped(const Node& node) {
  return node.outputs().size() == 1 && first_element(node, 0) == 0 &&
         node.outputs()[0].shape.elements() == node.input(0).shape().elements();
}

}  // namespace paceline
