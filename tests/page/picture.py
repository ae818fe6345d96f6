#!/usr/bin/env python3
"""picture.py KILN OUT.png [WIDTH HEIGHT [FRAGMENT]] -- draws a picture of the README.
picture.py KILN OUT.png timeline PROGRAM -- draws the other one.

The first shows the page of a transposition whose shared memory has bank conflicts.
It needs Chromium and nvdisasm, as explore_page_test.py does. The second shows the
timeline of the sample `profile` on the CPU device, where it uses three streams.
"""
import os
import subprocess
import sys
import tempfile

import browser

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../gpu/kernels")


def draw(kiln, out, size=(1280, 800), fragment="image=1&line=0:13&metric=4&theme=light"):
    with tempfile.TemporaryDirectory() as work:
        page = os.path.join(work, "transpose.html")
        subprocess.run(
            [kiln, "explore", "transpose.cu", "--arch", "sm_75,sm_90", "--compare",
             "transpose_padded.cu", "--run", "-o", page],
            check=True, capture_output=True, cwd=KERNELS)
        chromium = browser.Browser(browser.find_browser(), size)
        chromium.open(f"file://{page}#{fragment}")
        chromium.run("activate('source'); document.activeElement.blur()")
        chromium.screenshot(out)
        chromium.close()


# Shows the streams other than the first, and selects a kernel of them.
SHOW_STREAMS = """(() => {
    const kernels = [];
    profile.rows.forEach((row, at) => {
        for (let i = 0; i < row.n; i++)
            if (row.spans.kind[i] === KERNEL && at > 0)
                kernels.push([row.spans.begin[i], row.spans.end[i], row, i]);
    });
    kernels.sort((a, b) => a[0] - b[0]);
    const begin = kernels[0][0], end = kernels.at(-1)[1];
    setView(begin - (end - begin) * 0.06, end + (end - begin) * 0.06);
    select(kernels[3][2], kernels[3][3], false);
    document.activeElement.blur();
})()"""


def draw_timeline(kiln, words, out, size=(1280, 640)):
    with tempfile.TemporaryDirectory() as work:
        page = os.path.join(work, "profile.html")
        subprocess.run([kiln, "--device", "cpu", "profile", "--html", page, "--", *words],
                       check=True, capture_output=True, cwd=work)
        chromium = browser.Browser(browser.find_browser(), size)
        chromium.colour_scheme("light")
        chromium.open(f"file://{page}")
        chromium.run("new Promise((done) => setTimeout(done, 300))")
        chromium.run(SHOW_STREAMS)
        chromium.run("new Promise((done) => setTimeout(done, 300))")
        chromium.screenshot(out)
        chromium.close()


if __name__ == "__main__" and sys.argv[3:4] == ["timeline"]:
    draw_timeline(sys.argv[1], sys.argv[4:], sys.argv[2])
elif __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2],
         tuple(map(int, sys.argv[3:5])) or (1280, 800), *sys.argv[5:6])
