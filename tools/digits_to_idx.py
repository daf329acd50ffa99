#!/usr/bin/python3
"""Writes the 1,797 handwritten digits of scikit-learn as the four files of MNIST.

    tools/digits_to_idx.py digits.csv.gz FOLDER

A line of the input is one digit: 64 grey values 0..16 of an 8x8 picture, then the digit. The pictures become 28x28 with
grey values 0..255: each point is repeated 3x3, with a black frame of 2. The order is shuffled once, always the same way;
the first 1,437 are for training, the other 360 for testing.
"""

import gzip
import random
import struct
import sys
from pathlib import Path

SIDE_IN, SCALE, FRAME = 8, 3, 2
SIDE = SIDE_IN * SCALE + 2 * FRAME
TRAINING = 1437
SEED = 1797


def read_digits(path):
    """Returns [(64 values, digit)]; raises ValueError that names the line that is wrong."""
    digits = []
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for number, line in enumerate(lines, 1):
            fields = [int(float(field)) for field in line.split(",")]
            if len(fields) != SIDE_IN**2 + 1 or not all(0 <= value <= 16 for value in fields):
                raise ValueError(f"{path}: line {number} is no digit: {line.strip()[:40]!r}")
            digits.append((fields[:-1], fields[-1]))
    return digits


def enlarge(values):
    """64 values 0..16 -> 784 bytes."""
    picture = bytearray(SIDE * SIDE)
    for row in range(SIDE_IN * SCALE):
        for column in range(SIDE_IN * SCALE):
            value = values[row // SCALE * SIDE_IN + column // SCALE]
            picture[(row + FRAME) * SIDE + column + FRAME] = min(255, value * 16)
    return bytes(picture)


def images_file(digits):
    """The bytes of an IDX file of pictures: unsigned bytes (08) in 3 dimensions."""
    header = struct.pack(">BBBBIII", 0, 0, 8, 3, len(digits), SIDE, SIDE)
    return header + b"".join(enlarge(values) for values, _ in digits)


def labels_file(digits):
    """The bytes of an IDX file of labels: unsigned bytes (08) in 1 dimension."""
    return struct.pack(">BBBBI", 0, 0, 8, 1, len(digits)) + bytes(digit for _, digit in digits)


def idx_files(digits):
    """{file name: bytes} of the four files."""
    shuffled = list(digits)
    random.Random(SEED).shuffle(shuffled)
    files = {}
    for prefix, part in ("train", shuffled[:TRAINING]), ("t10k", shuffled[TRAINING:]):
        files[f"{prefix}-images-idx3-ubyte"] = images_file(part)
        files[f"{prefix}-labels-idx1-ubyte"] = labels_file(part)
    return files


def main(arguments):
    if len(arguments) != 2:
        print("usage: digits_to_idx.py digits.csv.gz FOLDER", file=sys.stderr)
        return 2
    try:
        folder = Path(arguments[1])
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in idx_files(read_digits(arguments[0])).items():
            (folder / name).write_bytes(content)
    except (OSError, ValueError, EOFError) as error:
        print(f"digits_to_idx.py: {error}", file=sys.stderr)
        return 74 if isinstance(error, OSError) else 65
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
