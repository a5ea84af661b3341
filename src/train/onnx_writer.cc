#include "train/onnx_writer.h"

#include <fmt/format.h>

#include <limits>

#include "paceline/error.h"
#include "paceline/version.h"

namespace paceline {
namespace {

/// Field numbers of ONNX's public messages (onnx/onnx.proto).
struct Onnx {
  enum Model : int {
    kIrVersion = 1,
    kProducer,
    kProducerVersion,
    kGraph = 7,
    kOpset,
    kMetadata = 14
  };
  enum Opset : int { kOpsetVersion = 2 };
  enum Entry : int { kKey = 1, kText };
  enum Graph : int { kNode = 1, kGraphName, kInitializer = 5, kInput = 11, kOutput };
  enum Node : int { kNodeInput = 1, kNodeOutput, kNodeName, kNodeType, kAttribute };
  enum Attribute : int { kAttributeName = 1, kFloat, kInteger, kIntegers = 8, kKind = 20 };
  enum AttributeKind : int { kIsFloat = 1, kIsInteger = 2, kAreIntegers = 7 };
  enum Tensor : int { kDims = 1, kDataType, kTensorName = 8, kRawData };
  enum Value : int { kValueName = 1, kValueType };
  enum Type : int { kTensorType = 1 };
  enum TensorType : int { kElementType = 1, kShape };
  enum Shape : int { kDimension = 1 };
  enum Dimension : int { kSize = 1, kOpenName };
};

constexpr int kFormatVersion = 8;  // the first one with opset 18
constexpr int kOpsetOfNodes = 18;
constexpr std::uint64_t kMostBytes = std::numeric_limits<std::int32_t>::max();

std::string attribute_message(const OnnxAttribute& attribute) {
  ProtoWriter writer;
  writer.bytes(Onnx::kAttributeName, attribute.name);
  if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
    writer.integer(Onnx::kInteger, *integer);
    writer.integer(Onnx::kKind, Onnx::kIsInteger);
  } else if (const auto* number = std::get_if<double>(&attribute.value)) {
    writer.float32(Onnx::kFloat, float(*number));
    writer.integer(Onnx::kKind, Onnx::kIsFloat);
  } else {
    for (const std::int64_t one : std::get<std::vector<std::int64_t>>(attribute.value)) {
      writer.integer(Onnx::kIntegers, one);
    }
    writer.integer(Onnx::kKind, Onnx::kAreIntegers);
  }
  return writer.message();
}

std::string value_message(std::string_view name, DType dtype, std::span<const OnnxDimension> dims) {
  ProtoWriter shape;
  for (const OnnxDimension& dim : dims) {
    ProtoWriter dimension;
    if (!dim.open) dimension.integer(Onnx::kSize, dim.size);
    if (!dim.name.empty()) dimension.bytes(Onnx::kOpenName, dim.name);
    shape.bytes(Onnx::kDimension, dimension.message());
  }
  ProtoWriter tensor, type, value;
  tensor.integer(Onnx::kElementType, onnx_type(dtype));
  tensor.bytes(Onnx::kShape, shape.message());
  type.bytes(Onnx::kTensorType, tensor.message());
  value.bytes(Onnx::kValueName, name);
  value.bytes(Onnx::kValueType, type.message());
  return value.message();
}

// Returns all of an initializer but its values, which are its last field.
std::string initializer_head(const TensorInfo& info) {
  ProtoWriter writer;
  for (const std::int64_t dim : info.shape.dims()) writer.integer(Onnx::kDims, dim);
  writer.integer(Onnx::kDataType, onnx_type(info.dtype));
  writer.bytes(Onnx::kTensorName, info.name);
  writer.begin_bytes(Onnx::kRawData, info.bytes());
  return writer.message();
}

/// Writes pieces to a file, one behind the other.
class Pieces {
 public:
  explicit Pieces(NewFile& file) : file_(file) {}
  void add(const void* bytes, std::size_t size) {
    file_.write_at({static_cast<const std::byte*>(bytes), size}, written_);
    written_ += size;
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  std::uint64_t written() const { return written_; }

 private:
  NewFile& file_;
  std::uint64_t written_ = 0;
};

}  // namespace

std::int64_t onnx_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 1;
    case DType::kUInt8:
      return 2;
    case DType::kInt32:
      return 6;
    case DType::kInt64:
      return 7;
    case DType::kBool:
      return 9;
    case DType::kFloat16:
      return 10;
    case DType::kFloat64:
      return 11;
    case DType::kBFloat16:
      return 16;
  }
  return 0;
}

void OnnxWriter::node(std::string_view name, std::string_view type,
                      std::span<const std::string> inputs, std::span<const std::string> outputs,
                      std::span<const OnnxAttribute> attributes) {
  ProtoWriter writer;
  for (const std::string& input : inputs) writer.bytes(Onnx::kNodeInput, input);
  for (const std::string& output : outputs) writer.bytes(Onnx::kNodeOutput, output);
  writer.bytes(Onnx::kNodeName, name);
  writer.bytes(Onnx::kNodeType, type);
  for (const OnnxAttribute& attribute : attributes) {
    writer.bytes(Onnx::kAttribute, attribute_message(attribute));
  }
  nodes_.bytes(Onnx::kNode, writer.message());
}

void OnnxWriter::input(std::string_view name, DType dtype, std::span<const OnnxDimension> dims) {
  ends_.bytes(Onnx::kInput, value_message(name, dtype, dims));
}

void OnnxWriter::output(std::string_view name, DType dtype, std::span<const OnnxDimension> dims) {
  ends_.bytes(Onnx::kOutput, value_message(name, dtype, dims));
}

void OnnxWriter::initializer(const std::string& name, const Tensor& values) {
  initializers_.push_back({{name, values.dtype(), values.shape()}, values});
}

void OnnxWriter::metadata(std::string_view key, std::string_view text) {
  ProtoWriter entry;
  entry.bytes(Onnx::kKey, key);
  entry.bytes(Onnx::kText, text);
  metadata_.bytes(Onnx::kMetadata, entry.message());
}

std::uint64_t OnnxWriter::write(NewFile& file, const Values& values) const {
  ProtoWriter graph;
  graph.bytes(Onnx::kGraphName, "paceline");
  std::uint64_t graph_bytes =
      graph.message().size() + nodes_.message().size() + ends_.message().size();
  std::vector<std::string> heads;
  for (const Initializer& initializer : initializers_) {
    const std::string head = initializer_head(initializer.info);
    const std::uint64_t bytes = initializer.info.bytes();
    ProtoWriter field;
    field.begin_bytes(Onnx::kInitializer, head.size() + bytes);
    heads.push_back(field.message() + head);
    graph_bytes += heads.back().size() + bytes;
  }
  ProtoWriter opset, model;
  opset.integer(Onnx::kOpsetVersion, kOpsetOfNodes);
  model.integer(Onnx::kIrVersion, kFormatVersion);
  model.bytes(Onnx::kProducer, "paceline");
  model.bytes(Onnx::kProducerVersion, version_and_commit());
  model.bytes(Onnx::kOpset, opset.message());
  model.begin_bytes(Onnx::kGraph, graph_bytes);
  const std::uint64_t all = model.message().size() + graph_bytes + metadata_.message().size();
  if (all > kMostBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: an ONNX file holds at most 2 GiB, and this model has {:.1f} GB",
                            file.path(), double(all) * 1e-9));
  }
  Pieces pieces(file);
  const ProtoWriter* const parts[] = {&model, &graph, &nodes_, &ends_};
  for (const ProtoWriter* part : parts) pieces.add(part->message());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Initializer& initializer = initializers_[i];
    const Tensor tensor =
        initializer.values.defined() ? initializer.values : values(initializer.info);
    pieces.add(heads[i]);
    pieces.add(tensor.raw(), tensor.bytes());
  }
  pieces.add(metadata_.message());
  return pieces.written();
}

}  // namespace paceline
