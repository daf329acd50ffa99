"""The reference of the worker SDK: everything public has a word of its own, and what has none is named."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

HEADER = """#ifndef MUSTER_TRIAL_H_
#define MUSTER_TRIAL_H_

namespace muster {

// A class.
class Trial {
 public:
  ~Trial();
  int size() const;  // of <it>, a & b
  // Starts one of two things:
  // left or right.
  void left();
  void right();
UNDOCUMENTED
 private:
  int size_;
};

}  // namespace muster

#endif  // MUSTER_TRIAL_H_
"""


class Docs(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("tools/docs", "tools/lib.sh", "tools/doxygen_filter.py", "docs/Doxyfile"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.headers = self.folder / "worker_sdk/include/muster"
        self.headers.mkdir(parents=True)

    def write(self, undocumented=""):
        (self.headers / "trial.h").write_text(HEADER.replace("UNDOCUMENTED", undocumented), encoding="utf-8")

    def run_docs(self, *arguments, root=None):
        return subprocess.run([(root or self.folder) / "tools/docs", *arguments], check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def test_all_that_is_public_in_the_worker_sdk_is_documented(self):
        done = self.run_docs("--check", root=ROOT)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_member_without_a_word_is_named_with_its_line(self):
        self.write("\n  void alone();\n")
        done = self.run_docs("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("trial.h:16: error: Member alone()", done.stderr)
        self.assertEqual(done.stderr.count("is not documented"), 1, done.stderr)

    def test_a_comment_is_about_all_declarations_up_to_the_next_blank_line(self):
        self.write()
        done = self.run_docs(str(self.folder / "out"))
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "out/html/classmuster_1_1Trial.html").read_text(encoding="utf-8")
        self.assertGreaterEqual(page.count("Starts one of two things: left or right."), 2)
        self.assertIn("of &lt;it&gt;, a &amp; b", page)

    def test_bad_usage_is_one_line(self):
        for arguments, word in ((("--fast",), "--fast"), (("a", "b"), "usage")):
            done = self.run_docs(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(word, done.stderr)

    def test_a_folder_that_cannot_be_made_is_one_line(self):
        self.write()
        (self.folder / "file").touch()
        done = self.run_docs(str(self.folder / "file/out"))
        self.assertEqual(done.returncode, 74)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
