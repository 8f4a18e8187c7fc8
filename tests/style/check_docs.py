#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_docs.py ROOT - documents name what exists.

Links lead to files and headings of the repository. Paths, functions and structs in code spans exist
in the tree. Every document is reachable from docs/README.md or README.md. No link leaves the
repository but to the web.
"""
import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r'\]\(([^)\s]+)\)')
SPAN = re.compile(r'`([^`]+)`')
# Names that stand for any name.
ANY_NAME = {'inf_module_verb_object', 'inf_noun'}
PATH = re.compile(r'^(?:proto|client|backends|daemon|shaders|systemd|tests|docs)/[\w./-]+$')
SYMBOL = re.compile(r'^(?:struct )?(inf(?:erd)?_[a-z0-9_]+)(?:\(\))?$')
FENCE = re.compile(r'^```.*?^```', re.M | re.S)


def anchors(text):
    """The anchors that a page offers: of its headings, and explicit ones."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r'^#+ (.*)$', FENCE.sub('', text), re.M):
        plain = re.sub(r'[^\w\- ]', '', heading.lower().replace('`', ''))
        found.add(plain.replace(' ', '-'))
    return found


def exists(root, path):
    """Whether the tree has the path; a path may lack its extension."""
    target = root / path
    return (
        target.exists()
        or any(target.parent.glob(target.name + '.*'))
        or any(root.glob(path + '*') if '*' in path else ())
    )


def check_links(root, page, text, pages):
    faults, reached = [], set()
    for link in LINK.findall(FENCE.sub('', text)):
        if re.match(r'https?://', link):
            continue
        path, _, anchor = link.partition('#')
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(root):
            faults.append(f'{page.relative_to(root)}: link {link} leaves the repository')
        elif not target.exists():
            faults.append(f'{page.relative_to(root)}: link {link}: no such file')
        else:
            reached.add(target)
            if (
                anchor
                and target.suffix == '.md'
                and anchor not in anchors(pages.get(target) or target.read_text())
            ):
                faults.append(f'{page.relative_to(root)}: link {link}: no such heading')
    return faults, reached


def check_spans(root, page, text, words):
    faults = []
    for span in SPAN.findall(FENCE.sub('', text)):
        symbol = SYMBOL.match(span)
        if symbol and symbol.group(1) not in words | ANY_NAME and page.name != 'CHANGELOG.md':
            faults.append(f'{page.relative_to(root)}: `{span}`: no such name in the code')
        elif (
            PATH.match(span)
            and not re.search(r'[A-Z]{4}', span)
            and not exists(root, span.rstrip('/'))
        ):
            faults.append(f'{page.relative_to(root)}: `{span}`: no such path')
    return faults


def main(root):
    root = Path(root).resolve()
    files = subprocess.run(
        ['git', '-C', root, 'ls-files', '--cached', '--others', '--exclude-standard'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    pages = {
        root / f: (root / f).read_text()
        for f in files
        if f.endswith('.md') and (root / f).is_file()
    }
    words = set()
    for name in files:
        if re.search(r'\.(c|h|def|py|proto)$|meson\.build$', name) and (root / name).is_file():
            words.update(re.findall(r'\binf(?:erd)?_[a-z0-9_]+', (root / name).read_text()))
    faults, reached = [], {root / 'README.md', root / 'docs/README.md'}
    for page, text in sorted(pages.items()):
        broken, targets = check_links(root, page, text, pages)
        faults += broken + check_spans(root, page, text, words)
        reached |= targets
    faults += [
        f'{page.relative_to(root)}: no document links to it'
        for page in pages
        if page not in reached
    ]
    print('\n'.join(faults) or f'{len(pages)} documents name what exists')
    return bool(faults)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
