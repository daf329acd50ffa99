"""What the checks look at: the files of this repository, and which project headers a file includes."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DATA = Path("tests/fuzz/corpus")  # bytes, not text

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def files():
    """Paths, relative to the root and sorted, of all files but data and those that git ignores; of all but hidden
    ones where this is no git checkout."""
    git = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=False,
                         capture_output=True)
    if git.returncode == 0:
        names = [Path(name) for name in git.stdout.decode().split("\0") if name]
    else:
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")
                 if not any(part.startswith((".", "bazel-")) for part in path.relative_to(ROOT).parts)]
    return sorted(name for name in set(names) if (ROOT / name).is_file() and DATA not in name.parents)


def with_suffix(*suffixes):
    return [name for name in files() if name.suffix in suffixes]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def includes(name):
    """([project paths], [system headers]) that a file includes itself. What stands in quotes and is a file of ours
    is a project path; generated headers (*.pb.h) stand as they are written, among the system headers."""
    project, system = [], []
    for quoted, angled in INCLUDE.findall(text(name)):
        written = quoted or angled
        if (ROOT / written).is_file():
            project.append(Path(written))
        elif quoted and (ROOT / Path(name).parent / quoted).is_file():
            project.append(Path(name).parent / quoted)
        else:
            system.append(written)
    return project, system


def closure(name):
    """All project files that a file reaches through includes, itself among them: {path: path that includes it}."""
    reached, todo = {Path(name): None}, [Path(name)]
    while todo:
        current = todo.pop()
        for header in includes(current)[0]:
            if header not in reached:
                reached[header] = current
                todo.append(header)
    return reached
