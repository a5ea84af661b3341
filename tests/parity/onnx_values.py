#!/usr/bin/env python3
"""Compares what onnxruntime computes of each exported model and op with what Paceline does, within 1e-5 for models, and
has onnx.checker look at each file.

usage: onnx_values.py FOLDER, with what onnx_values has written there.
"""
import json
import pathlib
import struct
import sys

import numpy
import onnx
import onnxruntime

TOLERANCE = {"model": 1e-5, "op": 3e-5}  # an op may sum thousands of numbers in another order
TYPES = {"F32": "<f4", "F64": "<f8", "F16": "<f2", "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "?"}


def read_tensors(path):
    """The tensors by name; none where NumPy has not their type."""
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    if any(of["dtype"] not in TYPES for of in header.values()):
        return None
    tensors = {}
    for name, of in header.items():
        begin, end = (8 + size + offset for offset in of["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], dtype=TYPES[of["dtype"]]).reshape(of["shape"])
    return tensors


def part(tensors, begin):
    return {name[len(begin):]: tensor for name, tensor in tensors.items() if name.startswith(begin)}


def distance(ours, theirs):
    """The largest difference of two elements, of numbers above 1 as a part of the largest."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    if ours.size == 0 or numpy.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"):
        return 0.0
    ours, theirs = ours.astype(numpy.float64), theirs.astype(numpy.float64)
    apart = numpy.abs(ours - theirs)[ours != theirs].max()
    return float(apart / max(1.0, numpy.abs(ours).max()))


def is_empty_lstm(path, tensors):
    """onnxruntime ends the process on one without rows."""
    return path.stem.startswith("op-lstm-") and any(tensor.size == 0 for tensor in part(tensors, "in/").values())


def compare(path):
    """The largest distance of an output; none where it cannot be computed here."""
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    worst = 0.0
    for values in path.parent.glob(f"{path.stem}@*.safetensors"):
        tensors = read_tensors(values)
        if tensors is None or is_empty_lstm(path, tensors):
            return None
        outputs = part(tensors, "out/")
        results = session.run(list(outputs), part(tensors, "in/"))
        worst = max([worst] + [distance(ours, theirs) for ours, theirs in zip(outputs.values(), results)])
    return worst


def main():
    distances, unknown = {}, []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        distances[path.stem] = compare(path)
        if distances[path.stem] is None:
            unknown.append(path.stem)
            del distances[path.stem]
        elif not path.stem.startswith("op-"):
            print(f"{path.stem}: at most {distances[path.stem]:.1e} apart")
    ops = {name: apart for name, apart in distances.items() if name.startswith("op-")}
    print(f"ops: {len(ops)} cases, at most {max(ops.values()):.1e} apart ({max(ops, key=ops.get)})")
    if unknown:
        print(f"checked, and not computed, since onnxruntime or NumPy cannot: {', '.join(unknown)}")
    far = [f"{name} ({apart:.1e})" for name, apart in distances.items() if not apart <= TOLERANCE["op" if name in ops else "model"]]
    if far:
        sys.exit(f"onnx: too far apart: {', '.join(far)}")


if __name__ == "__main__":
    main()
