#include "train/graph_def.h"

#include <type_traits>
#include <variant>

#include "paceline/op.h"
#include "summary/proto_writer.h"

namespace paceline {
namespace {

// Field numbers of TensorFlow's public messages GraphDef, NodeDef, AttrValue and TensorShapeProto.
enum GraphField : int { kNode = 1, kVersions = 4 };
enum VersionField : int { kProducer = 1 };
enum NodeField : int { kName = 1, kOp, kInput, kAttribute = 5 };
enum EntryField : int { kKey = 1, kContent };
enum AttributeField : int { kList = 1, kString, kInteger, kFloat, kBool, kType };
enum ListField : int { kListShape = 7 };
enum ShapeField : int { kDimension = 2 };
enum DimensionField : int { kSize = 1 };

// The version of the ops that the graph uses. TensorBoard accepts version 1.
constexpr int kGraphVersion = 1;

// Returns the number in the public enumeration DataType.
int data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kFloat64:
      return 2;
    case DType::kInt32:
      return 3;
    case DType::kUInt8:
      return 4;
    case DType::kInt64:
      return 9;
    case DType::kBool:
      return 10;
    case DType::kBFloat16:
      return 14;
    case DType::kFloat16:
      return 19;
  }
  return 0;
}

std::string type_attribute(DType dtype) {
  ProtoWriter writer;
  writer.integer(kType, data_type(dtype));
  return writer.message();
}

std::string shape_message(const Shape& shape) {
  ProtoWriter writer;
  for (const std::int64_t size : shape.dims()) {
    ProtoWriter dimension;
    dimension.integer(kSize, size);
    writer.bytes(kDimension, dimension.message());
  }
  return writer.message();
}

std::string shapes_attribute(const Node& node) {
  ProtoWriter list, writer;
  for (const ValueType& output : node.outputs()) {
    list.bytes(kListShape, shape_message(output.shape));
  }
  writer.bytes(kList, list.message());
  return writer.message();
}

// Returns an attribute's message; an empty one for constants and lists, which are left out.
std::string attribute(const Attributes::Item& item) {
  ProtoWriter writer;
  if (const bool* flag = std::get_if<bool>(&item)) writer.integer(kBool, *flag ? 1 : 0);
  if (const auto* number = std::get_if<std::int64_t>(&item)) writer.integer(kInteger, *number);
  if (const double* number = std::get_if<double>(&item)) writer.float32(kFloat, float(*number));
  if (const auto* text = std::get_if<std::string>(&item)) writer.bytes(kString, *text);
  if (const DType* dtype = std::get_if<DType>(&item)) return type_attribute(*dtype);
  return writer.message();
}

void add_attribute(ProtoWriter& node, std::string_view key, std::string_view value) {
  ProtoWriter entry;
  entry.bytes(kKey, key);
  entry.bytes(kContent, value);
  node.bytes(kAttribute, entry.message());
}

std::string node_message(const Node& node) {
  ProtoWriter writer;
  writer.bytes(kName, node.name());
  writer.bytes(kOp, node.op().name);
  for (const Value& input : node.inputs()) writer.bytes(kInput, input.name());
  add_attribute(writer, "_output_shapes", shapes_attribute(node));
  if (!node.outputs().empty()) {
    add_attribute(writer, "T", type_attribute(node.outputs()[0].dtype));
  }
  for (const auto& [key, item] : node.attributes().items()) {
    if (const std::string value = attribute(item); !value.empty()) {
      add_attribute(writer, key, value);
    }
  }
  return writer.message();
}

}  // namespace

std::string graph_def(const Graph& graph) {
  ProtoWriter writer, versions;
  for (const auto& node : graph.nodes()) writer.bytes(kNode, node_message(*node));
  versions.integer(kProducer, kGraphVersion);
  writer.bytes(kVersions, versions.message());
  return writer.message();
}

}  // namespace paceline
