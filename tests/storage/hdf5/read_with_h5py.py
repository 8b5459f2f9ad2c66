"""Usage: read_with_h5py.py WRITE_TENSOR_FILES

Runs the program, and compares every file it wrote with the text beside it: attributes, names, types, shapes, bytes."""

import pathlib
import subprocess
import sys
import tempfile

import h5py

STORED_TYPES = {"float32": "<f4", "bfloat16": "<u2", "int64": "<i8"}


def check(condition, what):
    if not condition:
        sys.exit(f"read_with_h5py: {what}")


def expected_attributes(line):
    job, kind, *numbers = line.split(",")
    names = ("block", "position", "version", "format")
    return {"job": bytes.fromhex(job), "kind": kind.encode(), **dict(zip(names, map(int, numbers)))}


def names_of_datasets(file):
    names = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


def check_tensor(dataset, line):
    name, dtype, shape, contents = line.split(" ")
    dimensions = tuple(int(d) for d in shape.strip("()").split(",") if d)
    check(dataset.dtype.str == STORED_TYPES[dtype], f"{name} has the type {dataset.dtype}, not that of {dtype}")
    check(dict(dataset.attrs) == {"dtype": dtype.encode()}, f"{name} has the attributes {dict(dataset.attrs)}")
    check(dataset.shape == dimensions, f"{name} has the shape {dataset.shape}, not {dimensions}")
    check(dataset[()].tobytes() == bytes.fromhex(contents), f"{name} has other values")


def check_file(path):
    attributes, *tensors = path.with_name(path.name + ".txt").read_text().splitlines()
    with h5py.File(path, "r") as file:
        check(dict(file.attrs) == expected_attributes(attributes), f"{path.name} has the attributes {dict(file.attrs)}")
        expected = sorted(line.split(" ")[0] for line in tensors)
        check(sorted(names_of_datasets(file)) == expected, f"{path.name} has other tensors than {expected}")
        for line in tensors:
            check_tensor(file[line.split(" ")[0]], line)
    return len(tensors)


with tempfile.TemporaryDirectory() as directory:
    subprocess.run([sys.argv[1], directory], check=True)
    files = sorted(pathlib.Path(directory).glob("*.h5"))
    check(len(files) == 3, f"the program wrote {len(files)} files")
    print(f"{sum(check_file(file) for file in files)} tensors are as they were written")
