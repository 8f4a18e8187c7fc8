#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_cycles.py ROOT BUILD [LIST] - no cycle between translation units.

Reads the symbols of the object files of a meson build folder with nm: a file that uses a symbol
depends on the file that defines it. Files that depend on each other in a circle cannot be read,
tested or moved one by one. A cycle is allowed if a line of LIST (default: tests/style/cycles.txt)
names all its files and a reason:

  FILE FILE... : REASON
"""
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

PARTS = ('proto/', 'backends/', 'client/', 'daemon/')


def sources(root, build):
    """Maps each source file of the product to its object files."""
    objects = defaultdict(list)
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = (Path(entry['directory']) / entry['file']).resolve()
        if not path.is_relative_to(root):
            continue
        name = path.relative_to(root).as_posix()
        target = build / entry['output']
        if name.startswith(PARTS) and target.exists() and '/tests/' not in f'/{entry["output"]}':
            objects[name].append(target)
    return objects


def read_symbols(objects):
    """Returns the symbols that each file defines and those that it uses."""
    owner = {path.as_posix(): name for name, paths in objects.items() for path in paths}
    defined, used = {}, defaultdict(set)
    result = subprocess.run(['nm', '-A', '-g', *owner], capture_output=True, text=True, check=True)
    for line in result.stdout.splitlines():
        path, _, rest = line.partition(':')
        *_, kind, symbol = rest.split()
        if kind == 'U':
            used[owner[path]].add(symbol)
        else:
            defined[symbol] = owner[path]
    return defined, used


def find_cycles(edges):
    """Tarjan's strongly connected components, without recursion; only those of several files."""
    index, low, stack, on_stack, cycles = {}, {}, [], set(), []
    for start in sorted(edges):
        work = [(start, iter(sorted(edges[start])))] if start not in index else []
        if work:
            index[start] = low[start] = len(index)
            stack.append(start)
            on_stack.add(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(edges.get(target, ())))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    component, stack[cut:] = stack[cut:], []
                    on_stack.difference_update(component)
                    if len(component) > 1:
                        cycles.append(sorted(component))
    return cycles


def main(root, build, listed=None):
    root, build = Path(root).resolve(), Path(build).resolve()
    allowed = []
    for line in Path(listed or root / 'tests/style/cycles.txt').read_text().splitlines():
        files, _, reason = line.partition(' : ')
        if files and not files.startswith('#'):
            allowed.append((set(files.split()), reason.strip()))
    defined, used = read_symbols(sources(root, build))
    edges, names = defaultdict(set), defaultdict(set)
    for name, symbols in used.items():
        for symbol in symbols:
            target = defined.get(symbol, name)
            if target != name:
                edges[name].add(target)
                names[name, target].add(symbol)
    faults, unused = [], list(allowed)
    for cycle in find_cycles(edges):
        match = next((a for a in allowed if set(cycle) <= a[0] and a[1]), None)
        if match:
            unused = [a for a in unused if a is not match]
            continue
        faults.append('cycle: ' + ' '.join(cycle))
        for a in cycle:
            for b in sorted(edges[a] & set(cycle)):
                faults.append(f'    {a} uses {", ".join(sorted(names[a, b])[:4])} of {b}')
    faults += [f'cycles.txt: no such cycle: {" ".join(sorted(files))}' for files, _ in unused]
    print(
        '\n'.join(faults)
        or f'no cycle between {len(used)} files but the {len(allowed)} that are listed'
    )
    return bool(faults)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
