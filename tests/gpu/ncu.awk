# ncu.awk -- "METRIC<tab>VALUE" of the one launch in the text of
# `ncu --csv --print-units base`: columns by their heads, thousands' commas gone.

function split_csv(text, cells, n, cell, c, i, quoted)
{
  n = 0
  cell = ""
  quoted = 0
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    if (c == "\"") {
      if (quoted && substr(text, i + 1, 1) == "\"") { # "" is a quote
        cell = cell c
        i++
      } else {
        quoted = !quoted
      }
    } else if (c == "," && !quoted) {
      cells[++n] = cell
      cell = ""
    } else {
      cell = cell c
    }
  }
  cells[++n] = cell
  return n
}

{
  sub(/\r$/, "")
}
/^"ID"/ {
  heads = split_csv($0, head)
  for (h = 1; h <= heads; h++) {
    if (head[h] == "Metric Name")
      name = h
    if (head[h] == "Metric Value")
      value = h
  }
  next
}
name && value && /^"/ {
  if (split_csv($0, row) < heads)
    next
  gsub(/,/, "", row[value])
  if (row[value] ~ /^[0-9.]+$/)
    print row[name] "\t" row[value] + 0
}
