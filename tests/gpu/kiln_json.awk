# kiln_json.awk -- "KEY<tab>VALUE" of the first kernel in what
# `kiln run --json` wrote; classes of warp instructions as "warp KEY".
/"warp_class":/ {
  prefix = "warp "
}
/"thread_class":/ {
  exit
}
/^[ \t]*"[^"]*":[ \t]*[0-9]/ {
  key = $0
  sub(/^[ \t]*"/, "", key)
  number = key
  sub(/".*/, "", key)
  sub(/^[^:]*:[ \t]*/, "", number)
  print prefix key "\t" number + 0
}
