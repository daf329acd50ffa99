"""One word per concept: docs/GLOSSARY.md lists the words and those that are not used in their place."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import sources  # noqa: E402  (the path is set above)

GLOSSARY = Path("docs/GLOSSARY.md")
WORDS = ("job", "node", "agent", "warden", "worker", "master", "member", "spare", "generation", "rank", "local rank",
         "group rank", "incident", "report")
LOOKED_AT = (".cc", ".h", ".proto")


def rows():
    """{word: words that are not used for it}, from the glossary's table: | **word** | meaning | not |"""
    table = {}
    for line in sources.text(GLOSSARY).splitlines():
        match = re.match(r"\| \*\*([^*]+)\*\* \| (.+?) \|([^|]*)\|$", line)
        if match:
            table[match[1]] = [word.strip() for word in match[3].split(",") if word.strip()]
    return table


class Words(unittest.TestCase):
    def test_the_glossary_explains_every_word(self):
        self.assertFalse(sorted(set(WORDS) - set(rows())), "missing in docs/GLOSSARY.md")

    def test_the_glossary_is_in_the_order_of_the_alphabet(self):
        words = list(rows())
        self.assertEqual(words, sorted(words))

    def test_no_other_word_is_used(self):
        avoided = {other: word for word, others in rows().items() for other in others}
        self.assertTrue(avoided)
        pattern = re.compile(r"(?<![A-Za-z])(" + "|".join(map(re.escape, avoided)) + r")s?(?![a-z])", re.IGNORECASE)
        findings = []
        for name in sources.with_suffix(*LOOKED_AT):
            for number, line in enumerate(sources.text(name).splitlines(), 1):
                for match in pattern.finditer(line):
                    word = avoided[match[1].lower()]
                    findings.append(f"{name}:{number}: '{match[1]}' is called '{word}' here: {line.strip()[:80]}")
        if findings:
            self.fail("\n" + "\n".join(findings))


if __name__ == "__main__":
    unittest.main()
