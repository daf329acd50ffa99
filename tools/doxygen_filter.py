"""Doxygen's view of a header of ours: prints FILE with its comments in the form that Doxygen reads.

A comment before a declaration belongs to all declarations up to the next blank line or comment; one at the end of a line to
that line. A comment with a blank line behind it is about the file and no declaration's. Left out are special members (destructors,
copies, moves), which do what the class says, and the constructors of exceptions, which are caught and not made.
"""

import re
import sys
from pathlib import Path

COMMENT = re.compile(r"\s*//")
TRAILING = re.compile(r"^(\s*[^/\s].*?[;,({}]) *// (.*)$")
NO_TRAILING = re.compile(r"^\s*(}|#|namespace|public:|private:|protected:)")
SPECIAL = re.compile(r"^\s*(~\w+\(|(explicit )?(\w+)\((const )?\3&&?( \w+)?\)|\w+& operator=\()")
EXCEPTION = re.compile(r"^ +(explicit )?\w+\([^;]*?\)\s*: Error\(what\)[^{]*\{\}$", re.MULTILINE)
TYPE = re.compile(r"^\s*(template <[^>]*>\s*)?(class|struct|enum|namespace|extern|typedef)\b")


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("#", "\\#").replace("@", "\\@")


def code(line):
    """A line without a leading comment."""
    if SPECIAL.match(line):
        return ""
    match = TRAILING.match(line)
    if match and not NO_TRAILING.match(line):
        return f"{match[1]}  ///< {escaped(match[2])}"
    return line


def run_of(lines, begin):
    """The end of the declarations that a comment before lines[begin] is about."""
    end, depth = begin, 0
    while end < len(lines) and lines[end].strip():
        if depth == 0 and (COMMENT.match(lines[end]) or NO_TRAILING.match(lines[end])):
            break
        depth += lines[end].count("{") - lines[end].count("}")
        end += 1
    return end


def statements(lines):
    """Lines, a list of them for each declaration or definition."""
    depth, found = 0, [[]]
    for line in lines:
        found[-1].append(line)
        depth += line.count("{") - line.count("}")
        if depth == 0 and re.search(r"[;}]\s*(//.*)?$", line):
            found.append([])
    return [some for some in found if some]


def documented(comment, declarations):
    """A comment and what it is about; the comment is said again for each further declaration that has none of its own."""
    words = [escaped(line.strip()[2:].strip()) for line in comment]
    out = ["/// " + line for line in words]
    for number, some in enumerate(statements(declarations)):
        lines = [code(line) for line in some]
        if number > 0 and not TYPE.match("\n".join(some)) and not any("///<" in line for line in lines):
            lines[0] = f"/** {' '.join(words)} */ {lines[0]}"
        out += lines
    return out


def filtered(lines):
    """Line numbers stay as they are."""
    out, i = [], 0
    while i < len(lines):
        begin = i
        while i < len(lines) and COMMENT.match(lines[i]):
            i += 1
        comment = lines[begin:i]
        if not comment:
            out.append(code(lines[i]))
            i += 1
        elif i == len(lines) or not lines[i].strip():
            out += [""] * len(comment)
        elif TYPE.match("\n".join(lines[i : i + 2])):
            out += documented(comment, [])
        else:
            end = run_of(lines, i)
            out += documented(comment, lines[i:end])
            i = end
    return out


def filtered_c(text):
    """C has block comments: those before a declaration are for Doxygen."""
    def convert(match):
        words = match[1].replace("@", "\\@").replace("<", "&lt;").replace(">", "&gt;")
        return f"/*{'*' if match[2] else ''}{words}*/\n"
    return re.sub(r"^/\*(.*?)\*/\n(?=(\S)?)", convert, text, flags=re.DOTALL | re.MULTILINE)


def main():
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    if "\n/* " in text:
        print(filtered_c(text), end="")
    else:
        text = EXCEPTION.sub(lambda constructor: "\n" * constructor[0].count("\n"), text)
        print("\n".join(filtered(text.splitlines())))


if __name__ == "__main__":
    main()
