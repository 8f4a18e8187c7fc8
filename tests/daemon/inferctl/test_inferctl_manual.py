#!/usr/bin/env python3
"""test_inferctl_manual.py INFERCTL MAN_PAGE - checks that inferctl --help and inferctl(1) agree."""
import re
import subprocess
import sys
from pathlib import Path


def help_of(program, *verb):
    return subprocess.run(
        [program, *verb, '--help'], capture_output=True, text=True, check=True
    ).stdout


def main(program, page):
    text = help_of(program)
    page = Path(page).read_text()
    verbs = re.findall(r'^  ([a-z]+) +\S', text, re.M)
    assert len(verbs) > 10, text
    assert verbs == re.findall(r'^\.It Cm (\w+)', page, re.M), 'verbs'

    options = set(
        re.findall(r'--([a-z-]+[a-z])', ''.join(help_of(program, verb) for verb in verbs) + text)
    )
    in_page = set(re.findall(r'Fl Fl ([a-z-]+[a-z])', page))
    assert options == in_page, options ^ in_page
    letters = set(
        re.findall(r'^  -(\w), --([\w-]+)', ''.join(help_of(program, verb) for verb in verbs), re.M)
    )
    in_page = set(re.findall(r'^\.It Fl (\w) , Fl Fl ([\w-]+)', page, re.M))
    assert letters == in_page, letters ^ in_page

    codes = re.search(r'^exit codes: (.*)\Z', text, re.M | re.S).group(1)
    section = re.search(r'^\.Sh EXIT STATUS(.*?)^\.Sh ', page, re.M | re.S).group(1)
    assert re.findall(r'\b(\d) ', codes) == re.findall(r'^\.It (\d)$', section, re.M), codes
    return 0


sys.exit(main(*sys.argv[1:]))
