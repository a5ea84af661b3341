// Exports a model to ONNX, with values from any source.
#pragma once

#include <string>

#include "checkpoint/new_file.h"
#include "paceline/predictor.h"
#include "train/onnx_writer.h"

namespace paceline {

/// Writes the model as write_onnx does, with the values that `values` returns for each variable.
/// The caller commits the file.
OnnxFile export_onnx(const OnnxModel& model, const OnnxWriter::Values& values, NewFile& file);

}  // namespace paceline
