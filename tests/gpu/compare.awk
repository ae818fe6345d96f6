# compare.awk -- a table of one kernel: metric, ncu, CPU device, difference.
#   awk -v kernel=NAME -f compare.awk NCU KILN, each "KEY<tab>VALUE" a line.
# "equal", "explained" and "DIFFERS" end the rows that have to be equal;
# KNOWN, a third file, says what else a row may be, and why:
#   KERNEL<tab>ROW<tab>N/M<tab>WHY     the GPU counts N where PTX has M
#   KERNEL<tab>ROW<tab>+P%<tab>WHY     up to P % more on the GPU, run by run

BEGIN {
  FS = "\t"
}
FNR == 1 {
  files++
}
files == 1 {
  ncu[$1] = $2
  next
}
files == 2 {
  kiln[$1] = $2
  next
}
/^#/ {
  next
}
$1 == kernel {
  how[$2] = $3
  why[$2] = $4
}

# Whether the difference is the one that is known.
function known(name, theirs, ours, part)
{
  if (how[name] ~ /\//) {
    split(how[name], part, "/")
    return theirs * part[2] == ours * part[1]
  }
  return name in how && theirs > ours && theirs <= ours * (1 + how[name] / 100)
}

function row(name, metric, ours, must, theirs, word)
{
  if (!(metric in ncu)) {
    printf "  %-26s %12s %12.0f  not measured\n", name, "-", ours
    return
  }
  theirs = ncu[metric]
  if (theirs == 0 && ours == 0 && !must)
    return
  if (must)
    word = theirs == ours ? "equal" : \
      known(name, theirs, ours) ? "explained" : "DIFFERS"
  else
    word = "shown"
  printf "  %-26s %12.0f %12.0f %+9.1f%%  %s\n", name, theirs, ours,
    theirs == 0 ? (ours == 0 ? 0 : 100) : 100 * (ours - theirs) / theirs, word
  if (word == "explained")
    printf "    %s\n", why[name]
}

END {
  lsu = "l1tex__t_requests_pipe_lsu_mem_global_op_"
  sectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_"
  waves = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
  conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
  insns = "smsp__sass_inst_executed_op_"

  printf "%-28s %12s %12s %10s\n", kernel, "ncu", "CPU device", "difference"
  row("global load requests", lsu "ld.sum", kiln["global_load_requests"], 1)
  row("global load sectors", sectors "ld.sum", kiln["global_load_sectors"], 1)
  row("global store requests", lsu "st.sum", kiln["global_store_requests"], 1)
  row("global store sectors", sectors "st.sum", kiln["global_store_sectors"], 1)
  row("shared load passes", waves "ld.sum", kiln["shared_load_passes"], 1)
  row("shared store passes", waves "st.sum", kiln["shared_store_passes"], 1)
  row("global load insns", insns "global_ld.sum",
    kiln["warp global load"] + kiln["warp generic load"], 1)
  row("global store insns", insns "global_st.sum",
    kiln["warp global store"] + kiln["warp generic store"], 1)
  row("shared load insns", insns "shared_ld.sum", kiln["warp shared load"], 1)
  row("shared store insns", insns "shared_st.sum", kiln["warp shared store"], 1)
  row("shared load conflicts", conflicts "ld.sum",
    kiln["shared_load_passes"] - kiln["shared_load_requests"], 0)
  row("shared store conflicts", conflicts "st.sum",
    kiln["shared_store_passes"] - kiln["shared_store_requests"], 0)
  row("shared store, addresses",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    kiln["shared_store_passes"], 0)
  row("branch targets", "smsp__sass_branch_targets.sum", kiln["branches"], 0)
  row("divergent branches", "smsp__sass_branch_targets_threads_divergent.sum",
    kiln["divergent_branches"], 0)
  row("warp instructions", "smsp__inst_executed.sum", kiln["warp_insns"], 0)
}
