# sanitizer.awk -- findings in the text of compute-sanitizer (memcheck, racecheck,
# initcheck, synccheck) that lie in one source file: a line "KIND<tab>LINE" each,
# in the words of `kiln check`; "divergent warp" may be its "divergent barrier" or
# its "wrong mask".
#   awk -v file=race.cu -f sanitizer.awk LOG
# The place is on the line "at KERNEL+0x70 in PATH/race.cu:7", or, for what was
# inlined from a header, on a "Device Frame:" that follows. A finding may begin
# behind what the program itself has printed of a line.

function place(text, n, part)
{
  while ((n = index(text, file ":")) > 0) {
    part = substr(text, n + length(file) + 1)
    if ((n == 1 || substr(text, n - 1, 1) ~ /[\/ ]/) && part ~ /^[0-9]/)
      return part + 0
    text = part
  }
  return 0
}

function found(what, line)
{
  if (what != "" && line > 0 && !seen[what, line]++)
    print what "\t" line
}

{
  text = $0
  sub(/^.*=========[ \t]*/, "", text)
}
text ~ /^(Error|Warning|Info): Race reported between/ || text ~ /^Race reported between/ {
  kind = "race"
  found(kind, place(text))
  next
}
kind == "race" && text ~ /^and (Read|Write|Atomic) access at/ {
  found(kind, place(text))
  next
}
text ~ /^Invalid __[a-z]+__ (read|write|atomic)/ {
  kind = "invalid" # which way, the line "Access to" says
  line = 0
  next
}
text ~ /^Uninitialized __[a-z]+__ memory read/ {
  kind = "uninitialised read"
  line = 0
  next
}
text ~ /^Barrier error detected/ {
  kind = text ~ /in block/ ? "divergent barrier" : \
    text ~ /in warp/ ? "divergent warp" : "wrong mask"
  line = 0
  next
}
text ~ /^at / && kind != "" {
  line = place(text)
  if (kind != "invalid")
    found(kind, line)
  next
}
text ~ /^(Access to|Address) .* is misaligned/ {
  if (kind == "invalid")
    kind = "misaligned"
  found(kind, line)
  next
}
text ~ /^(Access to|Address) .* is out of bounds/ {
  if (kind == "invalid")
    kind = "out of bounds"
  found(kind, line)
  next
}
text ~ /^Device Frame:/ && kind != "" && kind != "race" {
  if (line == 0) {
    line = place(text)
    found(kind == "invalid" ? "out of bounds" : kind, line)
  }
  next
}
text == "" {
  kind = ""
}
