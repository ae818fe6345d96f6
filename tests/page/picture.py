#!/usr/bin/env python3
"""picture.py KILN OUT.png [WIDTH HEIGHT [FRAGMENT]] -- draws the picture of the README.

It shows the page of a transposition whose shared memory has bank conflicts. Needs
Chromium and nvdisasm, as explore_page_test.py does.
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


if __name__ == "__main__":
    draw(sys.argv[1], sys.argv[2],
         tuple(map(int, sys.argv[3:5])) or (1280, 800), *sys.argv[5:6])
