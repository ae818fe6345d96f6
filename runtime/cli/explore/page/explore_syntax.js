/* explore_syntax.js -- colours the words of CUDA C++, PTX and SASS.
 *
 * Each language is one regular expression whose groups name the classes of
 * words. Rows are coloured one by one; only comments of C reach over several
 * lines, and inComment() finds these lines once per file. */

const C_WORDS = "alignas|auto|bool|break|case|char|class|const|constexpr|" +
  "continue|decltype|default|do|double|else|enum|explicit|extern|false|float|" +
  "for|goto|if|inline|int|long|namespace|nullptr|operator|private|public|" +
  "register|return|short|signed|sizeof|static|static_assert|struct|switch|" +
  "template|this|true|typedef|typename|union|unsigned|using|virtual|void|" +
  "volatile|while|u?int(?:8|16|32|64)_t|size_t|__\\w+__";

const SYNTAX = {
  c: new RegExp("(?<comment>//.*|/\\*.*?(?:\\*/|$))|" +
    "(?<text>\"(?:[^\"\\\\]|\\\\.)*\"?|'(?:[^'\\\\]|\\\\.)*'?)|" +
    "(?<pre>^\\s*#\\s*\\w+)|(?<word>\\b(?:" + C_WORDS + ")\\b)|" +
    "(?<number>\\b(?:0[xX][0-9a-fA-F]+|\\d[\\d.]*(?:[eE][-+]?\\d+)?)[a-zA-Z]*)|" +
    "(?<name>[A-Za-z_]\\w*)", "g"),
  ptx: new RegExp("(?<comment>//.*)|(?<text>\"[^\"]*\"?)|" +
    "(?<pre>(?<![\\w.])\\.[a-z_]\\w*)|(?<word>(?<=^\\s*(?:@!?%p\\d+\\s+)?)" +
    "[a-z][\\w.:]*(?=\\s|;))|(?<register>%\\w+)|" +
    "(?<label>\\$\\w+)|(?<number>\\b(?:0[xXfFdD][0-9a-fA-F]+|\\d+)\\b)|" +
    "(?<name>[A-Za-z_]\\w*)", "g"),
  sass: new RegExp("(?<pre>@!?U?P[T0-9]+)|(?<word>(?<=^(?:@!?U?P[T0-9]+\\s+)?)" +
    "[A-Z][\\w.]*)|(?<constant>c\\[[^\\]]*\\](?:\\[[^\\]]*\\])?)|" +
    "(?<register>\\bU?[RP](?:\\d+|Z|T)\\b(?:\\.\\w+)*)|" +
    "(?<label>`\\([^)]*\\))|(?<number>\\b(?:0x[0-9a-f]+|\\d[\\d.e+-]*)\\b)|" +
    "(?<name>[A-Za-z_]\\w*)", "g"),
};

/* Returns nodes for a text of one row. */
function coloured(language, text) {
  const shown = cut(text);
  const nodes = [];
  let at = 0;
  for (const match of shown.matchAll(SYNTAX[language])) {
    const kind = Object.keys(match.groups).find((key) => match.groups[key] != null);
    if (kind === "name") continue;
    if (match.index > at) nodes.push(shown.slice(at, match.index));
    nodes.push(span("s-" + kind, match[0]));
    at = match.index + match[0].length;
  }
  nodes.push(shown.slice(at));
  return nodes;
}

/* For each line of a C file: whether it starts inside a comment. */
const inComment = once((file) => {
  const starts = [];
  let inside = false;
  for (const line of fileLines(file)) {
    starts.push(inside);
    const open = line.lastIndexOf("/*"), close = line.lastIndexOf("*/");
    if (close > open || (close >= 0 && open < 0)) inside = false;
    else if (open >= 0 && !line.slice(0, open).includes("//")) inside = true;
  }
  return starts;
});

/* Colours a line of a source file. */
function colouredSource(file, line) {
  const text = fileLines(file)[line] ?? "";
  if (!inComment(file)[line]) return coloured("c", text);
  const end = text.indexOf("*/");
  if (end < 0) return [span("s-comment", cut(text))];
  return [span("s-comment", text.slice(0, end + 2)),
    ...coloured("c", text.slice(end + 2))];
}

/* The opcode of an instruction: "FFMA.FTZ" of "@!P0 FFMA.FTZ R1, R2, R3, R4". */
function opcodeOf(text) {
  return /^(?:@!?U?P[T0-9]+\s+)?([A-Z][\w.]*)/.exec(text)?.[1] ?? "";
}
