"""Makes the int8 form of Distill-MOS that is package data: `python -m benchmarks.quantise FULL.onnx OUT.onnx`.

Weights are rounded to 8 bits, with a scale for each channel; what is computed stays float. onnxruntime turns the
weights back when it loads the model, so that the small form is as fast as the full one. (Its own dynamic quantisation
computes with integers: with it, a window took five times as long, and scores differed three times as much.)

`pip install onnx` first: nothing else of Convoscope needs it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

LEAST = 4096
"""Tables with fewer numbers stay as they are: they take no room."""


def quantise(full: Path, out: Path) -> None:
    """Write a model with int8 weights."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(full))
    graph = model.graph
    weights = {one.name: one for one in graph.initializer}
    # The output channel of a convolution is its first axis, that of a product its last.
    axes: dict[str, int] = {}
    for node in graph.node:
        if node.op_type in ("Conv", "MatMul", "Gemm") and node.input[1] in weights:
            turned = any(one.name == "transB" and one.i for one in node.attribute)
            axes[node.input[1]] = 0 if node.op_type == "Conv" or turned else 1
    nodes: list[Any] = []
    for name, axis in axes.items():
        values = numpy_helper.to_array(weights[name])
        if values.size < LEAST or values.ndim < 2:
            continue
        others = tuple(number for number in range(values.ndim) if number != axis)
        scale = np.maximum(np.abs(values).max(axis=others), 1e-12).astype(np.float32) / 127
        shape = [-1 if number == axis else 1 for number in range(values.ndim)]
        rounded = np.clip(np.round(values / scale.reshape(shape)), -127, 127).astype(np.int8)
        graph.initializer.remove(weights[name])
        graph.initializer.extend(
            [numpy_helper.from_array(rounded, f"{name}_int8"), numpy_helper.from_array(scale, f"{name}_scale")]
        )
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_int8", f"{name}_scale"], [name], axis=axis))
    for node in reversed(nodes):
        graph.node.insert(0, node)
    onnx.checker.check_model(model)
    out.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    quantise(Path(sys.argv[1]), Path(sys.argv[2]))
