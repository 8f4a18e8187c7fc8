#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""render_dashboard.py URL SECONDS FILE - draws the panels of grafana.json as one SVG, from what the
Prometheus at URL recorded in the last SECONDS. For machines without Grafana, and for the picture in
docs/monitoring."""
import json
import sys
import time
import urllib.parse
import urllib.request
from html import escape
from pathlib import Path

WIDTH, HEIGHT, COLUMNS = 460, 190, 2  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 24, 44  # margins of the plot in a panel
COLOURS = ['#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', '#aa3377', '#888888', '#000000']
POINTS, LINES_MAX = 60, 8
UNITS = {'s': 's', 'bytes': 'B', 'percentunit': '%', 'reqps': '/s', 'short': ''}


def ask(url, query, seconds):
    """The series of a query: pairs of labels and points."""
    end = time.time()
    step = max(1, seconds / POINTS)
    query = query.replace('$__rate_interval', f'{max(4, int(4 * step))}s')
    arguments = {'query': query, 'start': end - seconds, 'end': end, 'step': step}
    address = f'{url}/api/v1/query_range?{urllib.parse.urlencode(arguments)}'
    with urllib.request.urlopen(address, timeout=30) as answer:
        result = json.load(answer)['data']['result']
    return [
        (row['metric'], [(t, float(v)) for t, v in row['values'] if v != 'NaN']) for row in result
    ]


def name_series(legend, labels):
    """A legend of Grafana with its labels filled in."""
    for key, value in labels.items():
        legend = legend.replace('{{' + key + '}}', value)
    return legend.strip()


def show_number(value, unit):
    """A number with its unit, such as 1.5 ms or 12 MB."""
    if unit == '%':
        return f'{value * 100:.3g} %'
    for factor, prefix in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k'), (1, ''), (1e-3, 'm'), (1e-6, 'µ')):
        if value >= factor:
            return f'{value / factor:.3g} {prefix}{unit}'.strip()
    return '0'


def draw_lines(series, top, box, span):
    """The lines of a panel, and their names below it."""
    left, upper, width, height = box
    start, end = span
    for i, (name, points) in enumerate(series):
        places = ' '.join(
            f'{left + width * (t - start) / (end - start):.1f},'
            f'{upper + height * (1 - min(v, top) / top):.1f}'
            for t, v in points
        )
        colour = COLOURS[i % len(COLOURS)]
        yield f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{places}"/>'
        x = left + (i % 4) * width / 4
        y = upper + height + 16 + 12 * (i // 4)
        yield f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}">{escape(name[:18])}</text>'


def draw_panel(panel, series, number, span):
    unit = UNITS[panel['fieldConfig']['defaults']['unit']]
    x, y = number % COLUMNS * WIDTH, number // COLUMNS * HEIGHT
    left, upper = x + LEFT, y + TOP
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    top = max([v for _, points in series for _, v in points] + [0]) * 1.1 or 1
    yield f'<text x="{left}" y="{y + 16}" font-weight="bold">{escape(panel["title"])}</text>'
    for part in (0, 0.5, 1):
        line = upper + height * (1 - part)
        yield f'<path d="M{left} {line:.1f}h{width}" stroke="#dddddd"/>'
        label = show_number(top * part, unit)
        yield f'<text x="{left - 4}" y="{line + 3:.1f}" text-anchor="end">{label}</text>'
    yield from draw_lines(series, top, (left, upper, width, height), span)


def main(url, seconds, file):
    seconds = float(seconds)
    panels = json.loads(Path(__file__).with_name('grafana.json').read_text())['panels']
    span = (time.time() - seconds, time.time())
    rows = (len(panels) + COLUMNS - 1) // COLUMNS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * COLUMNS}" '
        f'height="{HEIGHT * rows}" font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        series = []
        for target in panel['targets']:
            for labels, points in ask(url, target['expr'], seconds):
                if points:
                    series.append((name_series(target['legendFormat'], labels), points))
        # The lines that are highest come first, and the others are left out.
        series.sort(key=lambda one: -max(v for _, v in one[1]))
        lines += draw_panel(panel, series[:LINES_MAX], number, span)
    Path(file).write_text('\n'.join(lines + ['</svg>\n']))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
