# findings.awk -- what `kiln check` found, "KIND<tab>LINE<tab>SPACE" a finding;
# SPACE is shared, global or none (no address).
function flush_one()
{
  if (kind != "")
    print kind "\t" line "\t" space
  kind = ""
}

/^[a-z].* in .*, line [0-9]+ of / {
  flush_one()
  kind = $0
  sub(/ in .*/, "", kind)
  line = $0
  sub(/^.*, line /, "", line)
  sub(/ of .*/, "", line)
  space = "none"
  next
}
/^  address: / {
  space = /of shared memory/ ? "shared" : "global"
}
END {
  flush_one()
}
