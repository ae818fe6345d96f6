"""hostile_page.py -- hostile sources, and a check that a page is valid HTML.

html5lib reports every parse error that the HTML standard names. Where it is not
installed, the standard library's tokenizer still shows which elements the page
has.
"""
import html.parser
import sys

# Where Debian's python3-html5lib is, for another Python as well.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import html5lib
except ImportError:
    html5lib = None

MARKUP = b"""\
// </script><script>window.injected=1</script> <!-- <script> --> ]]> &lt; \\u003c
// </script a=1 </script\f <!-- <script a=1 <img src=x onerror=window.injected=1 >
/* <!--<script> {{data}} {{script}} </style></title><img src=x onerror=window.injected=1> */
#define TEXT "</script><svg onload=window.injected=1>"
extern "C" __global__ void k(int *p)
{
  *p = sizeof(TEXT); // \xe2\x80\xa8 \xe2\x80\xae evil \xef\xb7\x90
}
"""


def control_bytes():
    """Comments with all control bytes that a compiler accepts, and bytes that are not UTF-8.
    Left out: NUL, newlines, the backslash, and Ctrl-Z and 0xff, where NVRTC takes
    the file to end."""
    noise = bytes(b for b in range(1, 255) if b not in (10, 13, 26, 92))
    return (
        b"// " + noise + b" . . .\n// \xc2\x85 \xed\xa0\x80 \xf4\x90\x80\x80 \xef\xbf\xbf\n"
    )


class Outline(html.parser.HTMLParser):
    """Counts the elements that a page must have exactly once or twice."""

    def __init__(self):
        super().__init__()
        self.counts = {}

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, _ in attrs:
            if name.startswith("on"):
                self.counts["on..."] = self.counts.get("on...", 0) + 1


def problems(data):
    """Returns what is wrong with the bytes of a page, as a list of texts."""
    found = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [str(error)]
    outline = Outline()
    outline.feed(text)
    for tag, n in {"html": 1, "title": 1, "script": 2, "style": 1, "img": 0,
                   "svg": 0, "on...": 0}.items():
        if outline.counts.get(tag, 0) != n:
            found.append(f"{outline.counts.get(tag, 0)} times {tag}, not {n}")
    if html5lib is not None:
        parser = html5lib.HTMLParser()
        parser.parse(text)
        found += [f"{place}: {name}" for place, name, _ in parser.errors]
    return found
