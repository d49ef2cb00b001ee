"""The three file formats of the fixtures: safetensors (F32), IDX and partition.csv."""

import json
import struct

import numpy as np


def write_safetensors(path, tensors):
    """tensors: {name: array}; written as little-endian float32 in the order given."""
    header, data, offset = {}, [], 0
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(np.shape(value)),
                        "data_offsets": [offset, offset + len(raw)]}
        data.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data then starts on a multiple of 8
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    """{name: float32 array}"""
    with open(path, "rb") as f:
        raw = f.read()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "F32", name + ": not F32"
        begin, end = (8 + length + o for o in entry["data_offsets"])
        tensors[name] = np.frombuffer(raw[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def write_idx(path, values):
    """uint8 array of any rank: magic 0x08 and the rank, big-endian dimensions, bytes."""
    with open(path, "wb") as f:
        f.write(struct.pack(">BBBB", 0, 0, 8, values.ndim))
        f.write(struct.pack(">%dI" % values.ndim, *values.shape))
        f.write(values.astype(np.uint8).tobytes())


def read_idx(path):
    with open(path, "rb") as f:
        raw = f.read()
    rank = raw[3]
    shape = struct.unpack_from(">%dI" % rank, raw, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def write_partition(path, pairs):
    """pairs of (sample, agent); an agent's lines, top to bottom, are its visiting order."""
    with open(path, "w") as f:
        f.write("index,agent\n")
        f.writelines("%d,%d\n" % pair for pair in pairs)


def read_partition(path, n_agents):
    """One list of sample numbers per agent, in visiting order."""
    lists = [[] for _ in range(n_agents)]
    with open(path) as f:
        assert f.readline().strip() == "index,agent"
        for line in f:
            index, agent = map(int, line.split(","))
            lists[agent].append(index)
    return lists
