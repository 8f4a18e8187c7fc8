#!/usr/bin/env python3
"""test_manual.py DAEMON MAN_PAGE EXAMPLE MODEL_FLAGS MODEL_PAGE - inferd --help, inferd(8) and the
example say the same, and so do the list of a model's settings and inferd-model.conf(5)."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ON_COMMAND_LINE_ONLY = {'config', 'check', 'help', 'version'}


def check_model(flags, page):
    flag = r'^INF_MODEL_(?:LIVE_)?FLAG\((\w+), \w+, "(\w*)"'
    listed = re.findall(flag, Path(flags).read_text(), re.M)
    text = Path(page).read_text()
    assert listed
    assert [name for name, _ in listed] == re.findall(
        r'^\.It Cm (\w+) Ns = Ns Ar \w+$', text, re.M
    ), listed
    for name, default in listed:
        section = re.search(rf'^\.It Cm {name} .*?(?=^\.It |^\.El)', text, re.M | re.S).group()
        said = re.search(r'^Default: (\w+)', section, re.M)
        assert default in ('', 'auto', 'any') or (
            said and said.group(1) == default
        ), f'{name}: {default}'


def main(daemon, page, example, model_flags, model_page):
    check_model(model_flags, model_page)
    text = subprocess.run([daemon, '--help'], capture_output=True, text=True, check=True).stdout
    options = re.findall(r'^  --(\w+)(?:=(\w+))?$', text, re.M)
    defaults = dict(re.findall(r'^  --(\w+)=\w+\n.*\(default: (.*)\)$', text, re.M))
    in_page = re.findall(r'^\.It Cm (\w+)(?: Ns = Ns Ar (\w+))?$', Path(page).read_text(), re.M)
    assert options, text
    assert sorted(options) == sorted(in_page), set(options) ^ set(in_page)
    for name, default in defaults.items():
        section = re.search(
            rf'^\.It Cm {name} .*?(?=^\.It |^\.El)', Path(page).read_text(), re.M | re.S
        ).group()
        said = re.search(r'^Default:\s(?:\.Pa )?([^\s.,;]\S*?)[.,;]*(?:\s|$)', section, re.M)
        # An empty default is "none", or what that means: "all".
        assert said and (
            said.group(1) == default or default == 'none'
        ), f'{name}: {said}, wanted {default}'

    lines = Path(example).read_text()
    settings = dict(re.findall(r'^#(\w+) = ?(.*)$', lines, re.M))
    assert set(settings) == {name for name, _ in options} - ON_COMMAND_LINE_ONLY, settings
    for name, value in settings.items():
        assert value == ('' if defaults[name] == 'none' else defaults[name]), f'{name} = {value}'
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(re.sub(r'^#(\w+ =)', r'\1', lines, flags=re.M))
        file.flush()
        subprocess.run(
            [daemon, '--config=' + file.name, '--check'], check=True, stdout=subprocess.DEVNULL
        )
    print(f'{len(options)} settings, the same in all three')
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
