"""Generated files of known type, for the file type model.

Each kind is generated several times with seeded contents, identical everywhere.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import pickle
import random
import sqlite3
import tarfile
import wave
import zipfile

import numpy as np
from corpus_samples import SENTENCES
from PIL import Image

COPIES = 3
NAMES = ("harbour", "invoice", "weight", "channel", "ticket", "station", "letter", "colour", "window", "garden")


def _text(chance, lines=12):
    return "\n".join(" ".join(chance.sample(SENTENCES, 2)) for _ in range(lines)) + "\n"


def _names(chance):
    return chance.sample(NAMES, 4)


def _records(chance):
    return [{"id": i, "name": chance.choice(NAMES), "price": round(chance.uniform(1, 90), 2),
             "tags": chance.sample(NAMES, 2)} for i in range(15)]


def _table(chance, delimiter):
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    rows.writerow(["id", "name", "price", "sold"])
    rows.writerows([i, chance.choice(NAMES), round(chance.uniform(1, 90), 2), chance.random() < 0.5] for i in range(30))
    return out.getvalue()


def _picture(chance, form, **options):
    image = Image.new("RGB", (96, 64))
    image.putdata([(x * chance.randrange(1, 3) % 256, y * 4 % 256, chance.randrange(256))
                   for y in range(64) for x in range(96)])
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def _archive(chance):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _names(chance):
            archive.writestr(zipfile.ZipInfo(f"{name}.txt"), _text(chance), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _tar(chance):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in _names(chance):
            data = _text(chance).encode()
            entry = tarfile.TarInfo(f"{name}.txt")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _arrays(chance):
    return {name: np.array([chance.gauss(0, 1) for _ in range(400)], np.float32) for name in _names(chance)}


def _saved(save, *arrays, **named):
    out = io.BytesIO()
    save(out, *arrays, **named)
    return out.getvalue()


def _sound(chance):
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(chance.randrange(256) for _ in range(6000)))
    return out.getvalue()


def _database(chance):
    database = sqlite3.connect(":memory:")
    database.execute("create table sold (id integer primary key, name text, price real)")
    database.executemany("insert into sold values (?, ?, ?)",
                         [(i, chance.choice(NAMES), chance.uniform(1, 90)) for i in range(200)])
    database.commit()
    return database.serialize()


def _c(chance):
    a, b, c, _ = _names(chance)
    return f"""#include <stdio.h>
#include <stdlib.h>
#define MAX_{a.upper()} {chance.randrange(10, 99)}

struct {a} {{ int {b}; double {c}; struct {a} *next; }};

static int {b}_of(const struct {a} *first, int limit) {{
    int sum = 0;
    for (const struct {a} *it = first; it != NULL && limit > 0; it = it->next, limit--) {{
        if (it->{b} < 0) continue;
        sum += it->{b} * (int)it->{c};
    }}
    return sum;
}}

int main(int argc, char **argv) {{
    struct {a} *first = malloc(sizeof *first);
    first->{b} = argc > 1 ? atoi(argv[1]) : MAX_{a.upper()};
    first->next = NULL;
    printf("%d\\n", {b}_of(first, 3));
    free(first);
    return 0;
}}
"""


def _java(chance):
    a, b, c, _ = (name.capitalize() for name in _names(chance))
    return f"""package org.example.{a.lower()};

import java.util.ArrayList;
import java.util.List;

public final class {a} implements Comparable<{a}> {{
    private final List<{b}> all = new ArrayList<>();
    private int {c.lower()} = {chance.randrange(100)};

    @Override
    public int compareTo({a} other) {{
        return Integer.compare(this.{c.lower()}, other.{c.lower()});
    }}

    public static void main(String[] args) {{
        {a} made = new {a}();
        for (String argument : args) {{
            made.all.add(new {b}(argument));
        }}
        System.out.println(made.all.size());
    }}
}}
"""


def _rust(chance):
    a, b, c, _ = _names(chance)
    return f"""//! What holds a {a}.
use std::collections::HashMap;

#[derive(Debug, Clone, Default)]
pub struct {a.capitalize()} {{
    {b}: Vec<u32>,
    {c}: HashMap<String, usize>,
}}

impl {a.capitalize()} {{
    pub fn {b}_of(&self, name: &str) -> Option<u32> {{
        let at = *self.{c}.get(name)?;
        self.{b}.get(at).copied()
    }}
}}

fn main() {{
    let found = {a.capitalize()}::default();
    match found.{b}_of("{c}") {{
        Some(n) if n > {chance.randrange(9)} => println!("{{n}}"),
        _ => eprintln!("none"),
    }}
}}
"""


def _go(chance):
    a, b, c, _ = _names(chance)
    return f"""package main

import (
	"fmt"
	"os"
)

type {a.capitalize()} struct {{
	{b} int
	{c} map[string]float64
}}

func (x *{a.capitalize()}) add(name string, v float64) error {{
	if x.{c} == nil {{
		x.{c} = make(map[string]float64)
	}}
	x.{c}[name] += v
	return nil
}}

func main() {{
	x := &{a.capitalize()}{{{b}: {chance.randrange(50)}}}
	for _, name := range os.Args[1:] {{
		if err := x.add(name, 1); err != nil {{
			fmt.Fprintln(os.Stderr, err)
		}}
	}}
	fmt.Println(x.{b})
}}
"""


def _javascript(chance):
    a, b, c, _ = _names(chance)
    return f"""'use strict';
const {{ readFileSync }} = require('node:fs');

/** @param {{string}} path */
function {a}(path) {{
  const {b} = JSON.parse(readFileSync(path, 'utf8'));
  return Object.entries({b}).filter(([key]) => key !== '{c}').map(([key, value]) => `${{key}}: ${{value}}`);
}}

document.querySelectorAll('.{c}').forEach((element) => {{
  element.addEventListener('click', async () => {{
    const answer = await fetch('/{a}/{chance.randrange(99)}');
    element.textContent = await answer.text();
  }});
}});
module.exports = {{ {a} }};
"""


def _shell(chance):
    a, b, _, _ = _names(chance)
    return f"""#!/bin/bash
set -euo pipefail
{a}="${{1:-/tmp/{b}}}"
for file in "${a}"/*.txt; do
    [ -e "$file" ] || continue
    if grep -q '{b}' "$file"; then
        echo "found in $file" >&2
        sed -i 's/{b}/{a}/g' "$file"
    fi
done
exit {chance.randrange(3)}
"""


def _html(chance):
    a, b, _, _ = _names(chance)
    items = "".join(f"    <li><a href='/{name}.html'>{name}</a></li>\n" for name in _names(chance))
    return (f"<!DOCTYPE html>\n<html lang='en'>\n<head>\n  <meta charset='utf-8'>\n  <title>{a} and {b}</title>\n"
            f"  <link rel='stylesheet' href='{b}.css'>\n</head>\n<body>\n  <h1>{a}</h1>\n  <ul>\n{items}  </ul>\n"
            f"  <p>{chance.choice(SENTENCES)}</p>\n  <p>{chance.choice(SENTENCES)}</p>\n</body>\n</html>\n")


def _css(chance):
    return "".join(f".{name}, #{name} > a:hover {{\n  color: #{chance.randrange(4096):03x};\n  margin: 0 {chance.randrange(9)}px;\n"
                   "  display: flex;\n}\n\n" for name in chance.sample(NAMES, 8))


def _xml(chance):
    rows = "".join(f'  <entry id="{r["id"]}" name="{r["name"]}">\n    <price>{r["price"]}</price>\n  </entry>\n'
                   for r in _records(chance))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<catalogue xmlns="urn:example:{chance.choice(NAMES)}">\n{rows}</catalogue>\n'


def _svg(chance):
    shapes = "".join(f'  <circle cx="{chance.randrange(99)}" cy="{chance.randrange(99)}" r="{chance.randrange(1, 9)}" fill="#eee"/>\n'
                     for _ in range(14))
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" width="100" height="100">\n{shapes}</svg>\n'


def _ini(chance):
    return "".join(f"[{name}]\npath = /srv/{name}\nretries = {chance.randrange(9)}\nenabled = yes\n\n" for name in chance.sample(NAMES, 6))


def _yaml(chance):
    return "---\n" + "".join(f"{name}:\n  image: {name}:{chance.randrange(9)}\n  ports:\n    - \"{chance.randrange(9999)}\"\n"
                             f"  depends_on: [{chance.choice(NAMES)}]\n" for name in chance.sample(NAMES, 6))


def _toml(chance):
    a, b, _, _ = _names(chance)
    deps = "".join(f'{name} = "{chance.randrange(9)}.{chance.randrange(20)}"\n' for name in chance.sample(NAMES, 5))
    return f'[package]\nname = "{a}"\nversion = "0.{chance.randrange(9)}.1"\nedition = "2024"\n\n[dependencies]\n{deps}\n[profile.release]\nlto = true\n\n[[bin]]\nname = "{b}"\n'


def _markdown(chance):
    a, b, c, _ = _names(chance)
    return (f"# {a.capitalize()}\n\n{chance.choice(SENTENCES)}\n\n## {b.capitalize()}\n\n- **{c}**: `{a}`\n- [{b}](https://example.org/{b})\n\n"
            f"```bash\nmake {c}\n```\n\n| {a} | {b} |\n|---|---|\n| {chance.randrange(9)} | {chance.randrange(9)} |\n\n> {chance.choice(SENTENCES)}\n")


def _sql(chance):
    a, b, c, _ = _names(chance)
    rows = "".join(f"INSERT INTO {a} ({b}, {c}) VALUES ({chance.randrange(99)}, '{chance.choice(NAMES)}');\n" for _ in range(12))
    return (f"CREATE TABLE {a} (\n    id INTEGER PRIMARY KEY,\n    {b} INTEGER NOT NULL,\n    {c} VARCHAR(40)\n);\n{rows}"
            f"SELECT {b}, COUNT(*) FROM {a} WHERE {c} LIKE '%a%' GROUP BY {b} ORDER BY 2 DESC;\n")


_KINDS = {
    "json": lambda chance: json.dumps(_records(chance), indent=2),
    "jsonl": lambda chance: "".join(json.dumps(record) + "\n" for record in _records(chance)),
    "csv": lambda chance: _table(chance, ","),
    "tsv": lambda chance: _table(chance, "\t"),
    "txt": _text, "c": _c, "java": _java, "rust": _rust, "go": _go, "javascript": _javascript, "shell": _shell,
    "html": _html, "css": _css, "xml": _xml, "svg": _svg, "ini": _ini, "yaml": _yaml, "toml": _toml,
    "markdown": _markdown, "sql": _sql,
    "png": lambda chance: _picture(chance, "PNG"), "jpeg": lambda chance: _picture(chance, "JPEG"),
    "gif": lambda chance: _picture(chance, "GIF"), "bmp": lambda chance: _picture(chance, "BMP"),
    "tiff": lambda chance: _picture(chance, "TIFF"), "webp": lambda chance: _picture(chance, "WEBP"),
    "ico": lambda chance: _picture(chance, "ICO"),
    "zip": _archive, "tar": _tar, "gzip": lambda chance: gzip.compress(_text(chance).encode(), mtime=0),
    "bzip": lambda chance: bz2.compress(_text(chance).encode()), "xz": lambda chance: lzma.compress(_text(chance).encode()),
    "npy": lambda chance: _saved(np.save, next(iter(_arrays(chance).values()))),
    "npz": lambda chance: _saved(np.savez, **_arrays(chance)),
    "pickle": lambda chance: pickle.dumps(_records(chance), protocol=4),
    "wav": _sound, "sqlite": _database,
}  # fmt: skip


def files():
    """Pairs of the model's type name and the bytes of such a file."""
    for kind, make in _KINDS.items():
        for copy in range(COPIES):
            content = make(random.Random(f"{kind} {copy}"))
            yield kind, content.encode() if isinstance(content, str) else content
