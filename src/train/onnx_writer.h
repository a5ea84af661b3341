// Writes a model as ONNX (https://onnx.ai), opset 18.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/new_file.h"
#include "checkpoint/safetensors_header.h"
#include "paceline/tensor.h"
#include "summary/proto_writer.h"

namespace paceline {

/// One dimension of an input or output. An open dimension has a name in place of a size; it has
/// neither if its size is computed from other dimensions.
struct OnnxDimension {
  std::int64_t size = 0;
  bool open = false;
  std::string name = {};
  bool operator==(const OnnxDimension&) const = default;
};

struct OnnxAttribute {
  const char* name;
  std::variant<std::int64_t, double, std::vector<std::int64_t>> value;
};

/// Returns the number of a type in ONNX's TensorProto.DataType.
std::int64_t onnx_type(DType dtype);

/// Nodes are written in the order of the calls, so a node must come after the nodes that make its
/// inputs. The caller makes sure that the names match.
class OnnxWriter {
 public:
  /// Returns the values of an initializer that has none yet.
  using Values = std::function<Tensor(const TensorInfo&)>;

  /// An input "" is an optional input that is left out.
  void node(std::string_view name, std::string_view type, std::span<const std::string> inputs,
            std::span<const std::string> outputs, std::span<const OnnxAttribute> attributes = {});
  void input(std::string_view name, DType dtype, std::span<const OnnxDimension> dims);
  void output(std::string_view name, DType dtype, std::span<const OnnxDimension> dims);
  void initializer(const std::string& name, const Tensor& values);
  /// Adds an initializer whose values are read when the file is written.
  void initializer(const TensorInfo& info) { initializers_.push_back({info, {}}); }
  /// Adds a text about the model, under a key.
  void metadata(std::string_view key, std::string_view text);

  /// Writes the whole file, one initializer after the other, and returns its size in bytes. Throws
  /// kInvalidArgument when the file would have 2 GiB or more, which no reader takes, and what
  /// `values` and NewFile throw. The caller commits the file.
  std::uint64_t write(NewFile& file, const Values& values) const;

 private:
  struct Initializer {
    TensorInfo info;
    Tensor values;  // undefined if they are read when the file is written
  };
  ProtoWriter nodes_, ends_, metadata_;
  std::vector<Initializer> initializers_;
};

}  // namespace paceline
