"""Two small charts under each other as one SVG: a line a series, axes from zero, values beside the points.

    write_svg(path, title, "workers", [("processor", "% of a core", [(x, y), …]), ("memory", "MiB", [(x, y), …])])

By hand, because a plot of two lines is no reason for a library.
"""

import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 760, 240, 70, 30, 46, 64


def steps(largest):
    """Round numbers from 0 to at least `largest`, about five of them."""
    if largest <= 0:
        return [0, 1]
    size = 10 ** math.floor(math.log10(largest / 5))
    size *= next(m for m in (1, 2, 5, 10) if m * size >= largest / 5)
    return [i * size for i in range(math.ceil(largest / size - 1e-9) + 1)]


def number(value):
    return "%d" % value if value == int(value) else "%.3g" % value


def write_svg(path, title, x_name, charts):
    tall = TOP + len(charts) * (HEIGHT + GAP)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' %
           (WIDTH, tall), '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="24" font-size="15">%s</text>' % (LEFT, escape(title))]
    for row, (name, unit, points) in enumerate(charts):
        top = TOP + row * (HEIGHT + GAP)
        xs, ys = steps(max(p[0] for p in points)), steps(max(p[1] for p in points))
        wide, high = WIDTH - LEFT - RIGHT, HEIGHT - 20

        def at(x, y):
            return LEFT + wide * x / xs[-1], top + 20 + high * (1 - y / ys[-1])

        out.append('<text x="%d" y="%d">%s, %s</text>' % (LEFT, top + 10, escape(name), escape(unit)))
        for y in ys:
            px, py = at(0, y)
            out.append('<path d="M%.1f %.1fH%d" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>' %
                       (px, py, WIDTH - RIGHT, px - 6, py + 4, number(y)))
        for x in xs:
            px, py = at(x, 0)
            out.append('<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>' % (px, py + 16, number(x)))
        out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' %
                   (LEFT + wide // 2, top + HEIGHT + 32, escape(x_name)))
        places = [at(*p) for p in sorted(points)]
        out.append('<polyline fill="none" stroke="#1f5fa8" stroke-width="2" points="%s"/>' %
                   " ".join("%.1f,%.1f" % p for p in places))
        for (px, py), (_, y) in zip(places, sorted(points)):
            out.append('<circle cx="%.1f" cy="%.1f" r="3" fill="#1f5fa8"/>'
                       '<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>' % (px, py, px, py - 7, number(y)))
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n")
