"""The documents as tests read them: their texts, tables and samples.

A page is a document for people; a document is a page, the changelog or an example.
"""

import re

from rg_env.installation import PROJECT as ROOT

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = [
    *(README, CONTRIBUTING),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
EXAMPLES = sorted(p for p in (ROOT / "examples").iterdir() if p.is_file())
DOCUMENTS = [*PAGES, ROOT / "CHANGELOG.md", *EXAMPLES]


def name_of(path):
    return str(path.relative_to(ROOT))


def text_of(*paths):
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def prose_of(*paths):
    """Return texts without their samples."""
    return re.sub(r"^```.*?^```", "", text_of(*paths), flags=re.M | re.S)


def codes(prose):
    """Return what stands in backticks, each on one line."""
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def table(heading, pages=PAGES):
    """Return the rows of all tables whose first heading it is, each a list of cells."""
    head = f"| {heading} |"
    tables = [
        block.splitlines()[2:]
        for page in pages
        for block in text_of(page).split("\n\n")
        if block.startswith(head)
    ]
    assert tables, f"no table begins with {head!r}"
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for lines in tables
        for line in lines
    ]


def listed(section, page):
    """Return the names and the text of each item of the list in a section."""
    text = text_of(page).split(f"\n## {section}\n")[1].split("\n## ")[0]
    items = re.findall(r"^- (`[^:]+`): (.+(?:\n  .+)*)", text, re.M)
    assert items, f"{section} has no list of names"
    return [(codes(names), " ".join(meaning.split())) for names, meaning in items]


def blocks(language, pages=PAGES):
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(*pages), re.M | re.S)


def command_lines(pages=PAGES):
    """Return each command line of pages, its continuations joined."""
    shown = "\n".join(blocks("bash", pages)).replace("\\\n", " ")
    lines = [*shown.splitlines(), *codes(prose_of(*pages))]
    return [line.split(" # ")[0].strip() for line in lines]


def headings(page):
    """Return the level and the text of each heading, those in samples left out."""
    found = re.finditer(r"^(#+) (.+)$", prose_of(page), re.M)
    return [(len(match[1]), match[2]) for match in found]


def anchor(heading):
    """Return what a heading is linked as."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
