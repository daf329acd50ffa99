"""The digits are the same on every machine, and a damaged file is refused by name."""

import gzip
import hashlib
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import digits_to_idx  # noqa: E402  (the path is set above)


def some_digits(count=1797):
    return [([(index + point) % 17 for point in range(64)], index % 10) for index in range(count)]


class Digits(unittest.TestCase):
    def test_split_and_headers_are_those_of_mnist(self):
        files = digits_to_idx.idx_files(some_digits())
        self.assertEqual(struct.unpack(">4BIII", files["train-images-idx3-ubyte"][:16]), (0, 0, 8, 3, 1437, 28, 28))
        self.assertEqual(struct.unpack(">4BIII", files["t10k-images-idx3-ubyte"][:16]), (0, 0, 8, 3, 360, 28, 28))
        self.assertEqual(struct.unpack(">4BI", files["train-labels-idx1-ubyte"][:8]), (0, 0, 8, 1, 1437))
        self.assertEqual(len(files["train-images-idx3-ubyte"]), 16 + 1437 * 784)
        self.assertEqual(len(files["t10k-labels-idx1-ubyte"]), 8 + 360)

    def test_order_is_always_the_same(self):
        files = digits_to_idx.idx_files(some_digits())
        total = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()
        self.assertEqual(total, "d3915bf74a0cb417a86185faa93316a7bdf00ae64029e0d1897e7cff643b1e54")

    def test_a_point_becomes_a_square_of_nine_inside_a_black_frame(self):
        picture = digits_to_idx.enlarge([16] + [0] * 63)
        bright = {(index // 28, index % 28) for index, value in enumerate(picture) if value}
        self.assertEqual(bright, {(row, column) for row in (2, 3, 4) for column in (2, 3, 4)})
        self.assertEqual(picture[2 * 28 + 2], 255)

    def test_a_damaged_line_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "digits.csv.gz"
            with gzip.open(path, "wt") as file:
                file.write(",".join(["1"] * 65) + "\n1,2,3\n")
            done = subprocess.run([ROOT / "tools/digits_to_idx.py", path, Path(folder) / "out"], check=False, text=True,
                                  capture_output=True)
            self.assertEqual(done.returncode, 65)
            self.assertIn("line 2", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
